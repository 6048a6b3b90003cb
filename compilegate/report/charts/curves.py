"""What was measured step by step: losses of full runs, and step times of short blocks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import accumulate

from compilegate.domain.formats import count, duration
from compilegate.domain.judging.evidence import FullRun
from compilegate.domain.judging.measured import Block, Measured
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
    smooth,
    thin,
)

LOSS = "Training loss"
Curve = dict[int, tuple[float | None, float | None]]  # step -> (loss, seconds)


def loss_chart(measured: Measured) -> Chart:
    """Every full run's loss thin, each arm's mean over runs bold; over steps and over time."""
    points = points_each(2 * sum(len(arm.arm.quality) for arm in measured.arms))  # in two views
    curves = [[_curve(run, points) for run in arm.arm.quality] for arm in measured.arms]
    if not any(curve for arm in curves for curve in arm):
        why = (
            "No full training run recorded its loss: the trial ended before, or the runs did not "
            "write it."
        )
        return Chart("loss", LOSS, "", missing=why)
    timed = all(seconds is not None for arm in curves for c in arm for _, seconds in c.values())
    views = [View("Over steps", _loss_figure(measured, curves, over_time=False))]
    if timed:
        views.append(View("Over time", _loss_figure(measured, curves, over_time=True)))
    return Chart(
        "loss",
        LOSS,
        _loss_finding(measured, curves),
        note="Thin: each run. Bold: mean over an arm's runs, smoothed by a short running mean.",
        views=views,
        choice="Horizontal axis",
    )


def _curve(run: FullRun, most: int) -> Curve:
    """At most so many of its points, the last one always: where it ended is a figure."""
    curve = run.loss_curve
    stride = -(-len(curve) // most) or 1
    kept = [*curve[::stride][:-1], *curve[-1:]]
    return {point.step: (point.loss, point.seconds) for point in kept}


def _loss_figure(
    measured: Measured, curves: Sequence[Sequence[Curve]], *, over_time: bool
) -> Figure:
    thin_lines: list[Line] = []
    bold_lines: list[Line] = []
    for index, (arm, runs) in enumerate(zip(measured.arms, curves, strict=True)):
        style, recorded = arm_style(index), [run for run in runs if run]
        thin_lines += [
            Line(*_coordinates(run, over_time=over_time), style.role, width=1, pale=True)
            for run in recorded
        ]
        mean = _mean(recorded)
        if mean:
            bold_lines.append(Line(
                *_coordinates(mean, over_time=over_time), style.role, dash=style.dash,
                name=arm.name,
            ))  # fmt: skip
    lines = [*thin_lines, *reversed(bold_lines)]
    title = "seconds of training" if over_time else "optimizer step"
    return Figure(
        axis(title, [x for line in lines for x in line.x], show=count, room=0.02),
        axis("loss", [y for line in lines for y in line.y if y is not None], grid=True),
        lines,
    )


def _coordinates(curve: Curve, *, over_time: bool) -> tuple[list[float], list[float | None]]:
    """Points without a time are left out of a curve over time."""
    points = [
        (seconds if over_time else float(step), loss) for step, (loss, seconds) in curve.items()
    ]
    placed = [(x, loss) for x, loss in points if x is not None]
    return [x for x, _ in placed], [loss for _, loss in placed]


def _mean(runs: Sequence[Curve]) -> Curve:
    """Mean loss and time at the steps that every run of the arm reached."""
    if not runs:
        return {}
    steps = [
        step for step in runs[0] if all(step in run and run[step][0] is not None for run in runs)
    ]
    losses = smooth([statistics.fmean(_values(runs, step, 0)) for step in steps])
    timed = all(run[step][1] is not None for run in runs for step in steps)
    times = [statistics.fmean(_values(runs, step, 1)) if timed else None for step in steps]
    return {step: (loss, seconds) for step, loss, seconds in zip(steps, losses, times, strict=True)}


def _values(runs: Sequence[Curve], step: int, part: int) -> list[float]:
    return [value for run in runs if (value := run[step][part]) is not None]


def _loss_finding(measured: Measured, curves: Sequence[Sequence[Curve]]) -> str:
    ends = []
    for arm, runs in zip(measured.arms, curves, strict=True):
        last = [list(run.values())[-1][1] for run in runs if run]
        times = [seconds for seconds in last if seconds is not None]
        if times:
            ends.append(f"{arm.name} {duration(statistics.fmean(times))}")
    if not ends:
        return "Same steps, same seeds: the curves should coincide."
    return f"Time in training steps: {', '.join(ends)}."


# Step-time trace of a block.

STEP_TIMES = "Step times"
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
        return Chart("trace", STEP_TIMES, "", missing="No block left step times.")
    points = points_each(len(lengths) * len(measured.arms))
    views = [
        View(f"Block {n}" if len(lengths) <= 4 else str(n), _trace_figure(measured, n, points))
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
    return Chart(
        "trace",
        STEP_TIMES,
        _trace_finding(measured),
        note=note,
        views=views,
        choice="Block to show",
    )


def _is_timed(block: Block) -> bool:
    return bool(block.run.step_seconds) and min(block.run.step_seconds) > 0


def _trace_finding(measured: Measured) -> str:
    parts = []
    for arm in measured.arms:
        steady = sorted(segment.steady_step_seconds for segment in arm.steady)
        if steady:
            parts.append(f"{arm.name} {duration(steady[len(steady) // 2])}")
    return f"Steady step: {', '.join(parts)}." if parts else "No arm reached a steady state."


def _trace_figure(measured: Measured, block_number: int, points: int) -> Figure:
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
