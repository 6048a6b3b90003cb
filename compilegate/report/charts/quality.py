"""Final quality: every run, and the difference against the margin."""

from __future__ import annotations

import statistics
from typing import Any

from compilegate.report.charts.base import (
    Chart,
    Figure,
    Frame,
    View,
    figure,
    inert,
    label,
    line_across,
    line_up,
)  # fmt: skip
from compilegate.report.charts.palette import LIGHT, arm_style
from compilegate.report.formats import UNKNOWN, number, pair, significant
from compilegate.report.measured import Measured, MeasuredArm
from compilegate.report.model import Document

TITLE = "Quality"


def quality_chart(decision: Document, measured: Measured) -> Chart:
    """Each full run's final metric with the margin, and the difference with its interval."""
    if not any(run.metric is not None for arm in measured.arms for run in arm.quality):
        return Chart("quality", TITLE, "", missing=_why_none(measured))
    metric, found = measured.evidence.quality.metric, decision.get("quality") or {}
    views = [View("Runs", _runs_figure(measured, found))]
    if number(found.get("estimate")) is not None:
        views.append(View("Difference", _difference_figure(measured, found)))
    better = "higher" if measured.evidence.quality.goal == "maximize" else "lower"
    return Chart(
        "quality",
        f"{TITLE}: {metric} ({better} is better)",
        quality_finding(found, metric),
        note="A point is a full training run; bars are means. Beyond the dotted limit the "
        "candidate's mean would be worse by more than the margin.",
        views=views,
        choice="What to show",
    )


def quality_finding(quality: Document, metric: str) -> str:
    """The difference in words, without signs to misread."""
    estimate, ends = number(quality.get("estimate")), pair(quality.get("interval"))
    margin = number(quality.get("margin"))
    if estimate is None:
        return f"No difference in {metric} could be computed."
    text = f"Candidate {better_or_worse(estimate)}"
    if ends:
        text += f" (between {better_or_worse(ends[0])} and {better_or_worse(ends[1])})"
    return text + (f"; margin {significant(margin)}." if margin is not None else ".")


def better_or_worse(difference: float) -> str:
    """``0.002 worse``; the judge's differences are turned so that negative is worse."""
    if difference == 0:
        return "no different"
    return f"{significant(abs(difference))} {'better' if difference > 0 else 'worse'}"


def _why_none(measured: Measured) -> str:
    if any(arm.quality for arm in measured.arms):
        return "No full run finished, so there is no final metric to compare."
    return "Full training runs were not needed: the speed gate had settled the trial before."


def _reference(measured: Measured, quality: Document) -> float | None:
    """What the judge compares with, back from its difference; else the baseline's mean."""
    sign = 1.0 if measured.evidence.quality.goal == "maximize" else -1.0
    ours, estimate = _metrics(measured.lead), number(quality.get("estimate"))
    if ours and estimate is not None:
        return statistics.fmean(ours) - sign * estimate
    theirs = _metrics(measured.baseline)
    return statistics.fmean(theirs) if theirs else None


def _metrics(arm: MeasuredArm) -> list[float]:
    return [run.metric for run in arm.quality if run.metric is not None]


def _runs_figure(measured: Measured, quality: Document) -> Figure:
    goal, margin = measured.evidence.quality.goal, measured.evidence.quality.margin
    traces = []
    shown = [arm for arm in measured.arms if _metrics(arm)]
    for place, arm in enumerate(shown):
        traces += _arm_traces(place, measured.arms.index(arm), arm)
    reference, shapes, notes = _reference(measured, quality), [], []
    if reference is not None:
        limit = reference - margin if goal == "maximize" else reference + margin
        shapes = [line_across(limit, LIGHT["limit"], "dot", 1.6)]
        notes = [
            label(f"limit {significant(limit, 4)}", LIGHT["limit"],
                  xref="paper", x=0.5, xanchor="center", yref="y", y=limit,
                  yanchor="top" if goal == "maximize" else "bottom"),
        ]  # fmt: skip
    frame = Frame(
        x={
            "tickvals": list(range(len(shown))), "ticktext": [inert(arm.name) for arm in shown],
            "range": [-0.6, len(shown) - 0.4], "showgrid": False,
            "tickfont": {"size": 12.5, "color": LIGHT["text"]},
        },
        y={"title": inert(measured.evidence.quality.metric)},
        shapes=shapes,
        annotations=notes,
        extra={"showlegend": False, "margin": {"l": 62, "r": 18, "t": 14, "b": 40}},
    )  # fmt: skip
    return figure(traces, frame)


def _arm_traces(place: int, index: int, arm: MeasuredArm) -> list[dict[str, Any]]:
    style = arm_style(index)
    runs = [run for run in arm.quality if run.metric is not None]
    values = _metrics(arm)
    middle = (len(runs) - 1) / 2
    traces: list[dict[str, Any]] = [{
        "type": "scatter", "mode": "markers", "y": values,
        "x": [place + 0.08 * (i - middle) for i in range(len(runs))],
        "customdata": [UNKNOWN if run.seed is None else run.seed for run in runs],
        "marker": {
            "symbol": style.symbol, "size": 9, "color": style.colour,
            "line": {"color": LIGHT["paper"], "width": 1},
        },
        "hovertemplate": "seed %{customdata}: %{y:.5~g}<extra></extra>",
    }]  # fmt: skip
    if values:
        mean = statistics.fmean(values)
        traces.append({
            "type": "scatter", "mode": "lines", "x": [place - 0.28, place + 0.28],
            "y": [mean, mean], "line": {"color": style.colour, "width": 2.4},
            "hovertemplate": "mean %{y:.5~g}<extra></extra>",
        })  # fmt: skip
    return traces


def _difference_figure(measured: Measured, quality: Document) -> Figure:
    margin, style = measured.evidence.quality.margin, arm_style(1)
    estimate, ends = number(quality.get("estimate")) or 0.0, pair(quality.get("interval"))
    marks = [estimate, 0.0, -margin, *(ends or ())]
    room = 0.12 * (max(marks) - min(marks))
    low, high = min(marks) - room, max(marks) + room
    error: dict[str, Any] = {"visible": False}
    if ends:
        error = {
            "type": "data", "symmetric": False, "array": [ends[1] - estimate],
            "arrayminus": [estimate - ends[0]], "color": style.colour, "thickness": 3, "width": 12,
        }  # fmt: skip
    point = {
        "type": "scatter", "mode": "markers", "x": [estimate], "y": [0], "error_x": error,
        "marker": {"symbol": style.symbol, "size": 14, "color": style.colour},
        "hovertemplate": "%{x:.4~g}<extra></extra>",
    }  # fmt: skip
    top = {"yref": "paper", "y": 1, "yanchor": "bottom"}
    frame = Frame(
        x={"title": "candidate minus baseline, turned so that right is better",
           "range": [low, high]},
        y={"visible": False, "range": [-1, 1]},
        shapes=[
            {"type": "rect", "xref": "x", "x0": low, "x1": -margin, "yref": "paper", "y0": 0,
             "y1": 1, "fillcolor": LIGHT["limit_fill"], "line": {"width": 0}, "layer": "below"},
            line_up(-margin, LIGHT["limit"], "dot", 1.6),
            line_up(0.0, LIGHT["axis"]),
        ],
        annotations=[
            label("too much worse", LIGHT["limit"], x=-margin, xref="x", xanchor="right",
                  xshift=-4, **top),
            label("equal", LIGHT["muted"], x=0, xref="x", xanchor="left", xshift=4, **top),
        ],
        extra={"showlegend": False, "margin": {"l": 20, "r": 20, "t": 30, "b": 50}},
    )  # fmt: skip
    return figure([point], frame)
