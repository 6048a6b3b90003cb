"""Throughput per arm."""

from __future__ import annotations

import statistics
from typing import Any

from compilegate.domain.formats import number, pair, shown, significant
from compilegate.report.charts.base import Chart, Frame, View, figure, inert
from compilegate.report.charts.palette import LIGHT, arm_style
from compilegate.report.measured import Measured, MeasuredArm
from compilegate.report.model import Document

TITLE = "Throughput per arm"
NO_SAMPLES = "No block has a steady state with a recorded number of samples per step."


def throughput_chart(decision: Document, measured: Measured) -> Chart:
    """Samples per second of each arm with its interval, and every block as a point."""
    figures = {arm.get("name"): arm for arm in decision.get("arms") or () if arm}
    rows = [(arm, _with_mean(figures.get(arm.name) or {}, arm)) for arm in measured.arms]
    if not any(number(row.get("samples_per_second")) for _, row in rows):
        return Chart("throughput", TITLE, "", missing=NO_SAMPLES)
    traces: list[dict[str, Any]] = []
    for index, (arm, row) in enumerate(rows):
        place = len(rows) - 1 - index
        traces += [_bar(index, place, row), _points(index, place, arm)]
    frame = Frame(
        x={"title": "samples per second, steady state", "rangemode": "tozero"},
        y={
            "tickvals": list(range(len(rows))),
            "ticktext": [inert(arm.name) for arm, _ in reversed(rows)],
            "tickfont": {"size": 12.5, "color": LIGHT["text"]},
            "showgrid": False,
            "range": [-0.6, len(rows) - 0.4],
        },
        extra={"showlegend": False, "margin": {"l": 60, "r": 24, "t": 10, "b": 46}},
    )
    return Chart(
        "throughput",
        TITLE,
        "; ".join(f"{arm.name} {_rate(row)}" for arm, row in rows) + " samples/s.",
        note="Bar: mean over blocks with its 95% interval. Points: each block.",
        views=[View("", figure(traces, frame))],
        height=max(300, 100 + 68 * len(rows)),
    )


def _with_mean(row: Document, arm: MeasuredArm) -> Document:
    """The decision's figures; where it has none, the mean over blocks without an interval."""
    if number(row.get("samples_per_second")) is not None:
        return row
    rates = [rate for block in arm.blocks.values() if (rate := block.samples_per_second)]
    return {"samples_per_second": statistics.fmean(rates) if rates else None}


def _rate(row: Document) -> str:
    return shown(row.get("samples_per_second"), significant)


def _bar(index: int, place: int, row: Document) -> dict[str, Any]:
    style, value = arm_style(index), number(row.get("samples_per_second"))
    ends = pair(row.get("samples_per_second_interval"))
    error: dict[str, Any] = {"visible": False}
    if ends and value is not None:
        error = {
            "type": "data", "symmetric": False, "array": [ends[1] - value],
            "arrayminus": [value - ends[0]], "color": style.colour, "thickness": 2, "width": 8,
        }  # fmt: skip
    return {
        "type": "bar", "orientation": "h", "x": [value], "y": [place], "width": 0.46,
        "marker": {"color": style.fill, "line": {"color": style.colour, "width": 1.2}},
        "error_x": error, "hovertemplate": "%{x:.4~g} samples/s<extra></extra>",
    }  # fmt: skip


def _points(index: int, place: int, arm: MeasuredArm) -> dict[str, Any]:
    style = arm_style(index)
    found = [(n, b.samples_per_second) for n, b in arm.blocks.items() if b.samples_per_second]
    middle = (len(found) - 1) / 2
    return {
        "type": "scatter", "mode": "markers", "x": [rate for _, rate in found],
        # Spread over the bar so that equal blocks stay countable.
        "y": [place + 0.05 * (i - middle) for i in range(len(found))],
        "customdata": [n for n, _ in found],
        "marker": {
            "symbol": style.symbol, "size": 8, "color": style.colour,
            "line": {"color": LIGHT["paper"], "width": 1},
        },
        "hovertemplate": "block %{customdata}: %{x:.4~g} samples/s<extra></extra>",
    }  # fmt: skip
