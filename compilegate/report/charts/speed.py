"""Throughput of each arm, and the speed-up in each block."""

from __future__ import annotations

import statistics
from typing import Any

from compilegate.domain.arithmetic import ratio
from compilegate.domain.formats import (
    interval,
    number,
    pair,
    plural,
    shown,
    significant,
)  # fmt: skip
from compilegate.report.charts.base import (
    LIGHT,
    Chart,
    View,
    arm_style,
    band_across,
    error_bar,
    figure,
    inert,
    label,
    line_across,
    marker,
    scatter,
)
from compilegate.report.figures import Document, SpeedFigures
from compilegate.report.measured import Measured, MeasuredArm
from compilegate.report.trial_report import TrialReport

THROUGHPUT, SPEEDUP = "Throughput per arm", "Speed-up in each block"
TOUCHING = 0.14  # share of the axis that a label of two lines takes


def throughput_chart(trial: TrialReport, measured: Measured) -> Chart:
    """Samples per second of each arm with its interval, and every block as a point."""
    figures = {arm["name"]: arm for arm in trial.arms}
    rows = [(arm, _with_mean(figures.get(arm.name) or {}, arm)) for arm in measured.arms]
    if not any(number(row.get("samples_per_second")) for _, row in rows):
        why = "No block has a steady state with a recorded number of samples per step."
        return Chart("throughput", THROUGHPUT, "", missing=why)
    traces: list[dict[str, Any]] = []
    for index, (arm, row) in enumerate(rows):
        place = len(rows) - 1 - index
        traces += [_bar(index, place, row), _block_rates(index, place, arm)]
    drawn = figure(
        traces,
        x={"title": "samples per second, steady state", "rangemode": "tozero"},
        y={
            "tickvals": list(range(len(rows))),
            "ticktext": [inert(arm.name) for arm, _ in reversed(rows)],
            "tickfont": {"size": 12.5, "color": LIGHT["text"]},
            "showgrid": False,
            "range": [-0.6, len(rows) - 0.4],
        },
        showlegend=False,
        margin={"l": 60, "r": 24, "t": 10, "b": 46},
    )
    rates = (f"{arm.name} {shown(row.get('samples_per_second'), significant)}" for arm, row in rows)
    return Chart(
        "throughput",
        THROUGHPUT,
        f"{'; '.join(rates)} samples/s.",
        note="Bar: mean over blocks with its 95% interval. Points: each block.",
        views=[View("", drawn)],
        height=max(300, 100 + 68 * len(rows)),
    )


def _with_mean(row: Document, arm: MeasuredArm) -> Document:
    """The decision's figures; where it has none, the mean over blocks without an interval."""
    if number(row.get("samples_per_second")) is not None:
        return row
    rates = [rate for block in arm.blocks.values() if (rate := block.samples_per_second)]
    return {"samples_per_second": statistics.fmean(rates) if rates else None}


def _bar(index: int, place: int, row: Document) -> dict[str, Any]:
    style, value = arm_style(index), number(row.get("samples_per_second"))
    ends = pair(row.get("samples_per_second_interval"))
    return {
        "type": "bar", "orientation": "h", "x": [value], "y": [place], "width": 0.46,
        "marker": {"color": style.fill, "line": {"color": style.colour, "width": 1.2}},
        "error_x": error_bar(value, ends, style, thickness=2, width=8),
        "hovertemplate": "%{x:.4~g} samples/s<extra></extra>",
    }  # fmt: skip


def _block_rates(index: int, place: int, arm: MeasuredArm) -> dict[str, Any]:
    rates = {n: b.samples_per_second for n, b in arm.blocks.items() if b.samples_per_second}
    middle = (len(rates) - 1) / 2
    return scatter(
        "markers",
        list(rates.values()),
        # Spread over the bar so that equal blocks stay countable.
        [place + 0.05 * (i - middle) for i in range(len(rates))],
        customdata=list(rates),
        marker=marker(arm_style(index), 8),
        hovertemplate="block %{customdata}: %{x:.4~g} samples/s<extra></extra>",
    )


def speedup_chart(trial: TrialReport, measured: Measured) -> Chart:
    """Every block's full-run speed-up against the thresholds, with the estimate's interval."""
    speedups = [(arm, measured.speedups(arm)) for arm in measured.candidates]
    if not any(blocks for _, blocks in speedups):
        why = "No block has a steady state in both arms of a pair."
        return Chart("speedup", SPEEDUP, "", missing=why)
    traces = [
        scatter(
            "markers",
            list(blocks),
            list(blocks.values()),
            name=inert(arm.name),
            marker=marker(arm_style(index), 11, 1.5),
            hovertemplate="block %{x}: %{y:.3f}x<extra></extra>",
        )
        for index, (arm, blocks) in enumerate(speedups, 1)
        if blocks
    ]
    numbers = sorted({n for _, blocks in speedups for n in blocks})
    seen = _range(trial.speed, measured, [x for _, blocks in speedups for x in blocks.values()])
    where = "each arm on its own" if measured.apart else "both arms back to back on one machine"
    drawn = figure(
        traces,
        x={"title": f"block ({where})", "tickvals": numbers, "showgrid": False,
           "range": [min(numbers) - 0.6, max(numbers) + 0.6]},
        y={"title": "full-run time, baseline ÷ candidate", "ticksuffix": "x", "range": seen},
        shapes=_shapes(trial.speed, measured),
        annotations=_labels(measured, seen),
        showlegend=len(traces) > 1,
        margin={"l": 56, "r": 84, "t": 36, "b": 46},
    )  # fmt: skip
    return Chart(
        "speedup",
        SPEEDUP,
        _finding(trial.speed, len(numbers)),
        note=_note(trial.speed, measured),
        views=[View("", drawn)],
    )


def _finding(speed: SpeedFigures, blocks: int) -> str:
    used = speed.blocks
    old = used == 0 and not speed.full_runs
    counted = "production's full jobs" if old else plural(used or blocks, "block")
    if speed.full_runs:
        counted += f" and {plural(speed.full_runs, 'full run')}"
    if speed.estimate is None:
        return f"{counted}; the judge gave no estimate."
    between = f" ({interval(speed.interval, ratio)})" if speed.interval else ""
    return f"{ratio(speed.estimate)}{between} over {counted}."


def _note(speed: SpeedFigures, measured: Measured) -> str:
    text = "A block is the unit of replication: fresh processes, compile time included."
    if speed.full_runs:
        text += " The estimate also counts the wall clock of full runs."
    if speed.interval:
        text += " Line and band: the estimate and its interval."
    if measured.price_ratio != 1:
        price = f"{measured.price_ratio:.2f} times as much per hour"
        text += f" {measured.lead.name} costs {price}: reject and promote are set for its dollars."
    return text


def _shapes(speed: SpeedFigures, measured: Measured) -> list[dict[str, Any]]:
    style, (reject, promote) = arm_style(1), measured.thresholds
    shapes = [
        line_across(1.0, LIGHT["axis"]),
        line_across(reject, LIGHT["limit"], "dot", 1.6),
        line_across(promote, LIGHT["goal"], "dash", 1.6),
    ]
    if speed.interval:
        shapes.append(band_across(*speed.interval, style.fill))
    if speed.estimate is not None:
        shapes.append(line_across(speed.estimate, style.colour, width=1.5))
    return shapes


def _labels(measured: Measured, seen: list[float]) -> list[dict[str, Any]]:
    reject, promote = measured.thresholds
    right = {"xref": "paper", "x": 1.01, "xanchor": "left", "yref": "y", "align": "left"}
    # Labels that would touch stand above the one line and below the other.
    close = promote - reject < TOUCHING * (seen[1] - seen[0])
    below, above = ("top", "bottom") if close else ("middle", "middle")
    marks = (
        ("no change", "muted", 1.0, "middle"),
        (f"reject<br>{ratio(reject)}", "limit", reject, below),
        (f"promote<br>{ratio(promote)}", "goal", promote, above),
    )
    return [
        label(text, LIGHT[colour], y=y, yanchor=anchor, **right)
        for text, colour, y, anchor in marks
    ]


def _range(speed: SpeedFigures, measured: Measured, values: list[float]) -> list[float]:
    ends, marks = speed.interval, [1.0, *measured.thresholds, *values]
    if ends:
        # A hopelessly wide interval must not squeeze the points into a line.
        reach = max(max(marks) - min(marks), 0.1)
        marks += [max(ends[0], min(marks) - reach), min(ends[1], max(marks) + reach)]
    room = 0.08 * (max(marks) - min(marks))
    return [min(marks) - room, max(marks) + room]
