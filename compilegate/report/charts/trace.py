"""Step-time trace of a block."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from compilegate.domain.formats import duration
from compilegate.report.charts.base import Chart, Figure, Frame, View, figure, inert, label, line_up
from compilegate.report.charts.palette import LIGHT, arm_style
from compilegate.report.charts.thin import POINTS, thin
from compilegate.report.measured import Block, Measured

TITLE = "Step times"
SLOW = 2.0  # an early step slower than this many steady steps counts as compiling


def trace_chart(measured: Measured) -> Chart:
    """Every step of each block over time, compile phase shaded and the warm-up cut marked."""
    timed = [
        (number, block)
        for arm in measured.arms
        for number, block in arm.blocks.items()
        if block.run.step_seconds and min(block.run.step_seconds) > 0
    ]
    if not timed:
        return Chart("trace", TITLE, "", missing="No block left step times.")
    numbers = sorted({number for number, _ in timed})
    views = [
        View(f"Block {n}" if len(numbers) <= 4 else str(n), _figure(measured, n)) for n in numbers
    ]
    longest = max(len(block.run.step_seconds) for _, block in timed)
    note = (
        "A plateau is one step. Shaded: the candidate's early steps, in which it compiles. "
        "Dotted line: its warm-up cut."
    )
    if longest > POINTS:
        note += (
            f" Of {longest:,} steps at most {POINTS} are drawn per arm: "
            "the fastest and slowest of each stretch."
        )
    return Chart("trace", TITLE, _finding(measured), note=note, views=views, choice="Block to show")


def _finding(measured: Measured) -> str:
    parts = []
    for arm in measured.arms:
        steady = sorted(segment.steady_step_seconds for segment in arm.steady)
        if steady:
            parts.append(f"{arm.name} {duration(steady[len(steady) // 2])}")
    return f"Steady step: {', '.join(parts)}." if parts else "No arm reached a steady state."


def _figure(measured: Measured, block_number: int) -> Figure:
    traces: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    values: list[float] = []
    for index, arm in enumerate(measured.arms):
        block = arm.blocks.get(block_number)
        if block and block.run.step_seconds and min(block.run.step_seconds) > 0:
            traces.append(_line(index, arm.name, block))
            values += block.run.step_seconds
    lead = measured.lead.blocks.get(block_number)
    if lead and lead.segment:
        shapes, notes = _marks(lead, arm_style(1).colour)
    frame = Frame(
        x={"title": "seconds of training", "showgrid": False, "rangemode": "tozero"},
        y={"title": "time per step (logarithmic)", "type": "log", **_ticks(values)},
        shapes=shapes,
        annotations=notes,
    )
    return figure(traces, frame)


def _ticks(values: list[float]) -> dict[str, Any]:
    """Ticks at 1, 2 and 5 of each decade, named in the unit that suits them."""
    if not values:
        return {}
    low, high = math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.15
    decades = range(math.floor(low), math.ceil(high) + 1)
    leads = (1, 2, 5) if high - low < 3 else (1,)
    marks = [lead * 10.0**decade for decade in decades for lead in leads]
    inside = [mark for mark in marks if low <= math.log10(mark) <= high]
    return {"tickvals": inside, "ticktext": [duration(x) for x in inside], "range": [low, high]}


def _line(index: int, name: str, block: Block) -> dict[str, Any]:
    style, seconds = arm_style(index), block.run.step_seconds
    begins, points = [0.0, *accumulate(seconds)], thin(seconds)
    last = points[-1]
    return {
        "type": "scatter", "mode": "lines", "name": inert(name),
        "x": [*(round(begins[step], 5) for step, _ in points), round(begins[last[0] + 1], 5)],
        "y": [*(round(value, 6) for _, value in points), round(last[1], 6)],
        "customdata": [*(step + 1 for step, _ in points), last[0] + 1],
        "line": {"color": style.colour, "width": 1.5, "shape": "hv"},
        "hovertemplate": "step %{customdata}: %{y:.4~g} s<extra>%{fullData.name}</extra>",
    }  # fmt: skip


def _marks(block: Block, colour: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The compile phase and the warm-up cut of the candidate's segment."""
    assert block.segment is not None  # noqa: S101 - the caller looked; this is for the type checker
    begins = [0.0, *accumulate(block.run.step_seconds)]
    cut = begins[block.segment.warm_up_steps]
    compiling = begins[_compile_steps(block)]
    at = {"xref": "x", "xanchor": "left", "xshift": 5, "yref": "paper", "yanchor": "top"}
    shapes = [line_up(cut, colour, "dot", 1.6)]
    notes = [label("warm-up cut", colour, x=cut, y=1, **at)]
    if compiling:
        shapes.append({
            "type": "rect", "yref": "paper", "y0": 0, "y1": 1, "xref": "x", "x0": 0,
            "x1": compiling, "fillcolor": LIGHT["shade"], "line": {"width": 0},
            "layer": "below",
        })  # fmt: skip
    recorded = block.run.compile_seconds
    if recorded > 0:
        words = f"{duration(recorded)} compiling"
        notes.append(label(words, LIGHT["muted"], x=cut, y=0.91, **at))
    return shapes, notes


def _compile_steps(block: Block) -> int:
    """Steps up to the last slow one before the warm-up cut."""
    assert block.segment is not None  # noqa: S101 - as above
    limit = SLOW * block.segment.steady_step_seconds
    early = block.run.step_seconds[: block.segment.warm_up_steps]
    return max((index + 1 for index, seconds in enumerate(early) if seconds > limit), default=0)
