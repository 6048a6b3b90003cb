"""Final quality: every run, and the difference against the margin."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from compilegate.domain.formats import UNKNOWN, number, pair, significant
from compilegate.domain.judging.evidence import FullRun
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
from compilegate.report.measured import Measured
from compilegate.report.model import Document
from compilegate.report.reference import (
    Reference,
    compared_runs,
    confidence_words,
    reference_of,
)  # fmt: skip

TITLE = "Quality"


def quality_chart(decision: Document, measured: Measured) -> Chart:
    """Each full run's final metric with the margin, and the difference with its interval."""
    if not any(_metrics(compared_runs(measured, arm)) for arm in measured.arms):
        return Chart("quality", TITLE, "", missing=_why_none(measured))
    metric, found = measured.evidence.quality.metric, decision.get("quality") or {}
    views = [View("Runs", _runs_figure(measured, found))]
    if number(found.get("estimate")) is not None:
        views.append(View("Difference", _difference_figure(measured, found)))
    better = "higher" if measured.evidence.quality.goal == "maximize" else "lower"
    return Chart(
        "quality",
        f"{TITLE}: {metric} ({better} is better)",
        quality_finding(found, reference_of(measured, found), metric),
        note="A point is a full training run; bars are means. The difference is counted from the "
        "dashed reference; beyond the dotted limit it would be worse by more than the margin.",
        views=views,
        choice="What to show",
    )


def quality_finding(quality: Document, reference: Reference | None, metric: str) -> str:
    """The difference in words, without signs to misread."""
    estimate, ends = number(quality.get("estimate")), pair(quality.get("interval"))
    margin = number(quality.get("margin"))
    if estimate is None:
        return f"No difference in {metric} could be computed."
    text = f"Candidate {better_or_worse(estimate)}"
    if reference and reference.past:
        text += f" than {reference.words}" if estimate else f" from {reference.words}"
    if ends:
        level = confidence_words(quality)
        between = f"{better_or_worse(ends[0])} and {better_or_worse(ends[1])}"
        text += f" (between {between}{level and '; ' + level})"
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


def _metrics(runs: Sequence[FullRun]) -> list[float]:
    return [run.metric for run in runs if run.metric is not None]


def _runs_figure(measured: Measured, quality: Document) -> Figure:
    past = measured.evidence.quality.history
    reference = reference_of(measured, quality)
    names, traces = ["past runs"] if past else [], _past_traces(past)
    for index, arm in enumerate(measured.arms):
        runs = [run for run in compared_runs(measured, arm) if run.metric is not None]
        if runs:
            traces += _arm_traces(len(names), index, runs)
            names.append(inert(arm.name))
    frame = Frame(
        x={
            "tickvals": list(range(len(names))), "ticktext": names,
            "range": [-0.6, len(names) - 0.4], "showgrid": False,
            "tickfont": {"size": 12.5, "color": LIGHT["text"]},
        },
        y={"title": inert(measured.evidence.quality.metric)},
        shapes=_lines(measured, reference),
        annotations=_line_labels(measured, reference),
        extra={"showlegend": False, "margin": {"l": 62, "r": 18, "t": 32, "b": 40}},
    )  # fmt: skip
    return figure(traces, frame)


def _limit(measured: Measured, reference: Reference) -> float:
    goal, margin = measured.evidence.quality.goal, measured.evidence.quality.margin
    return reference.value - margin if goal == "maximize" else reference.value + margin


def _lines(measured: Measured, reference: Reference | None) -> list[dict[str, Any]]:
    if reference is None:
        return []
    return [
        line_across(_limit(measured, reference), LIGHT["limit"], "dot", 1.6),
        line_across(reference.value, LIGHT["muted"], "dash", 1.2),
    ]


def _line_labels(measured: Measured, reference: Reference | None) -> list[dict[str, Any]]:
    """The limit at its line; the reference above the plot, clear of the points around it."""
    if reference is None:
        return []
    limit = _limit(measured, reference)
    return [
        label(f"limit {significant(limit, 4)}", LIGHT["limit"], xref="paper", x=0.5,
              xanchor="center", yref="y", y=limit,
              yanchor="top" if limit < reference.value else "bottom"),
        label(f"dashed: reference, {reference.words}", LIGHT["muted"], xref="paper", x=1,
              xanchor="right", yref="paper", y=1, yanchor="bottom", yshift=6),
    ]  # fmt: skip


def _past_traces(past: Sequence[float]) -> list[dict[str, Any]]:
    """A pale first column: these runs count for less than those of today."""
    if not past:
        return []
    middle = (len(past) - 1) / 2
    step = min(0.08, 0.6 / len(past))
    mean = statistics.fmean(past)
    return [
        {
            "type": "scatter", "mode": "markers", "y": list(past),
            "x": [step * (i - middle) for i in range(len(past))],
            "marker": {"symbol": "circle-open", "size": 8, "color": LIGHT["baseline"]},
            "opacity": 0.6,
            "hovertemplate": "past run: %{y:.5~g}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines", "x": [-0.28, 0.28], "y": [mean, mean],
            "line": {"color": LIGHT["baseline"], "width": 2.4}, "opacity": 0.6,
            "hovertemplate": "mean %{y:.5~g}<extra></extra>",
        },
    ]  # fmt: skip


def _arm_traces(place: int, index: int, runs: Sequence[FullRun]) -> list[dict[str, Any]]:
    style, values = arm_style(index), _metrics(runs)
    middle, step = (len(runs) - 1) / 2, min(0.08, 0.6 / len(runs))
    traces: list[dict[str, Any]] = [{
        "type": "scatter", "mode": "markers", "y": values,
        "x": [place + step * (i - middle) for i in range(len(runs))],
        "customdata": [UNKNOWN if run.seed is None else run.seed for run in runs],
        "marker": {
            "symbol": style.symbol, "size": 9, "color": style.colour,
            "line": {"color": LIGHT["paper"], "width": 1},
        },
        "hovertemplate": "seed %{customdata}: %{y:.5~g}<extra></extra>",
    }]  # fmt: skip
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
        x={"title": "difference from the reference, right is better",
           "range": [low, high]},
        y={"visible": False, "range": [-1, 1]},
        shapes=[
            {"type": "rect", "xref": "x", "x0": low, "x1": -margin, "yref": "paper", "y0": 0,
             "y1": 1, "fillcolor": LIGHT["limit_fill"], "line": {"width": 0}, "layer": "below"},
            line_up(-margin, LIGHT["limit"], "dot", 1.6),
            line_up(0.0, LIGHT["axis"]),
        ],
        annotations=[
            label("too much worse", LIGHT["limit"], x=0, xref="paper", xanchor="left",
                  **top),
            label("equal", LIGHT["muted"], x=0, xref="x", xanchor="left", xshift=4, **top),
            label(confidence_words(quality), style.colour, x=0.5, xref="paper", xanchor="center",
                  y=0, yref="y", yanchor="bottom", yshift=14),
        ],
        extra={"showlegend": False, "margin": {"l": 20, "r": 20, "t": 30, "b": 50}},
    )  # fmt: skip
    return figure([point], frame)
