"""Loss curves over steps and over time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from compilegate.domain.formats import count, duration
from compilegate.domain.judging.evidence import FullRun
from compilegate.report.charts.figure import (
    Chart,
    Figure,
    Line,
    View,
    arm_style,
    axis,
    points_each,
    smooth,
)
from compilegate.report.measured import Measured, loss_curve

TITLE = "Training loss"
Curve = dict[int, tuple[float | None, float | None]]  # step -> (loss, seconds)


def loss_chart(measured: Measured) -> Chart:
    """Every full run's loss thin, each arm's mean over runs bold; over steps and over time."""
    points = points_each(2 * sum(len(arm.quality) for arm in measured.arms))  # in two views
    curves = [[_curve(run, points) for run in arm.quality] for arm in measured.arms]
    if not any(curve for arm in curves for curve in arm):
        why = (
            "No full training run recorded its loss: the trial ended before, or the runs did not "
            "write it."
        )
        return Chart("loss", TITLE, "", missing=why)
    timed = all(seconds is not None for arm in curves for c in arm for _, seconds in c.values())
    views = [View("Over steps", _figure(measured, curves, over_time=False))]
    if timed:
        views.append(View("Over time", _figure(measured, curves, over_time=True)))
    return Chart(
        "loss",
        TITLE,
        _finding(measured, curves),
        note="Thin: each run. Bold: mean over an arm's runs, smoothed by a short running mean.",
        views=views,
        choice="Horizontal axis",
    )


def _curve(run: FullRun, most: int) -> Curve:
    """At most so many of its points, the last one always: where it ended is a figure."""
    curve = loss_curve(run)
    stride = -(-len(curve) // most) or 1
    kept = [*curve[::stride][:-1], *curve[-1:]]
    return {point.step: (point.loss, point.seconds) for point in kept}


def _figure(measured: Measured, curves: Sequence[Sequence[Curve]], *, over_time: bool) -> Figure:
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


def _finding(measured: Measured, curves: Sequence[Sequence[Curve]]) -> str:
    ends = []
    for arm, runs in zip(measured.arms, curves, strict=True):
        last = [list(run.values())[-1][1] for run in runs if run]
        times = [seconds for seconds in last if seconds is not None]
        if times:
            ends.append(f"{arm.name} {duration(statistics.fmean(times))}")
    if not ends:
        return "Same steps, same seeds: the curves should coincide."
    return f"Time in training steps: {', '.join(ends)}."
