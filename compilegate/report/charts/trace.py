"""Step-time trace of a block."""

from __future__ import annotations

from itertools import accumulate

from compilegate.domain.formats import duration
from compilegate.domain.judging.steady_state import Segment
from compilegate.report.charts.figure import (
    DOTTED,
    Band,
    Chart,
    Figure,
    Line,
    Mark,
    Rule,
    View,
    arm_style,
    axis,
    points_each,
    seconds_axis,
    thin,
)
from compilegate.report.measured import Block, Measured

TITLE = "Step times"
SLOW = 2.0  # an early step slower than this many steady steps counts as compiling


def trace_chart(measured: Measured) -> Chart:
    """Every step of each block over time, compile phase shaded and the warm-up cut marked."""
    lengths = {
        number: len(block.run.step_seconds)
        for arm in measured.arms
        for number, block in arm.blocks.items()
        if _is_timed(block)
    }
    if not lengths:
        return Chart("trace", TITLE, "", missing="No block left step times.")
    points = points_each(len(lengths) * len(measured.arms))
    views = [
        View(f"Block {n}" if len(lengths) <= 4 else str(n), _figure(measured, n, points))
        for n in sorted(lengths)
    ]
    note = (
        "A plateau is one step. Shaded: the candidate's early steps, in which it compiles. "
        "Dotted line: its warm-up cut."
    )
    if max(lengths.values()) > points:
        note += (
            f" Of {max(lengths.values()):,} steps at most {points} are drawn per arm: "
            "the fastest and slowest of each stretch."
        )
    return Chart("trace", TITLE, _finding(measured), note=note, views=views, choice="Block to show")


def _is_timed(block: Block) -> bool:
    return bool(block.run.step_seconds) and min(block.run.step_seconds) > 0


def _finding(measured: Measured) -> str:
    parts = []
    for arm in measured.arms:
        steady = sorted(segment.steady_step_seconds for segment in arm.steady)
        if steady:
            parts.append(f"{arm.name} {duration(steady[len(steady) // 2])}")
    return f"Steady step: {', '.join(parts)}." if parts else "No arm reached a steady state."


def _figure(measured: Measured, block_number: int, points: int) -> Figure:
    marks: list[Mark] = []
    ends: list[float] = []
    values: list[float] = []
    for index, arm in enumerate(measured.arms):
        block = arm.blocks.get(block_number)
        if block and _is_timed(block):
            marks.append(_line(index, arm.name, block, points))
            ends.append(sum(block.run.step_seconds))
            values += block.run.step_seconds
    lead = measured.lead.blocks.get(block_number)
    if lead and lead.segment:
        marks = [*_compiling(lead, lead.segment), *marks]
    return Figure(
        axis("seconds of training", ends, from_zero=True, room=0.02),
        seconds_axis("time per step (logarithmic)", values),
        marks,
    )


def _line(index: int, name: str, block: Block, most: int) -> Line:
    style, seconds = arm_style(index), block.run.step_seconds
    begins, points = [0.0, *accumulate(seconds)], thin(seconds, points=most)
    last_step, last_value = points[-1]
    return Line(
        [*(begins[step] for step, _ in points), begins[last_step + 1]],
        [*(value for _, value in points), last_value],
        style.role, width=1.4, stepped=True, name=name,
    )  # fmt: skip


def _compiling(block: Block, segment: Segment) -> list[Mark]:
    """The compile phase and the warm-up cut of the candidate's segment."""
    role, begins = arm_style(1).role, [0.0, *accumulate(block.run.step_seconds)]
    cut, early = begins[segment.warm_up_steps], block.run.step_seconds[: segment.warm_up_steps]
    slow = [index for index, s in enumerate(early, 1) if s > SLOW * segment.steady_step_seconds]
    recorded, name = block.run.compile_seconds, "warm-up cut"
    if recorded > 0:
        name += f" ({duration(recorded)} compiling)"
    marks: list[Mark] = [Rule(role, x=cut, dash=DOTTED, name=name)]
    return [Band(0, begins[slow[-1]], "shade"), *marks] if slow else marks
