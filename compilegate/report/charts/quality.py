"""Final quality: every run, and the difference against the margin."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from compilegate.domain.formats import UNKNOWN, significant
from compilegate.domain.judging.evidence import FullRun
from compilegate.report.charts.base import (
    LIGHT,
    Chart,
    Figure,
    View,
    arm_style,
    band_up,
    error_bar,
    figure,
    inert,
    label,
    line_across,
    line_up,
    marker,
    scatter,
)  # fmt: skip
from compilegate.report.charts.evaluation import evaluation_view
from compilegate.report.evaluation import evaluation_words
from compilegate.report.figures import QualityFigures
from compilegate.report.measured import (
    Measured,
    Reference,
    better_or_worse,
    compared_runs,
    confidence_words,
    reference_of,
)  # fmt: skip
from compilegate.report.trial_report import TrialReport

TITLE = "Quality"


def quality_chart(trial: TrialReport, measured: Measured) -> Chart:
    """Each full run's final metric with the margin, and the difference with its interval."""
    if not any(_finished(compared_runs(measured, arm)) for arm in measured.arms):
        return Chart("quality", TITLE, "", missing=_why_none(measured))
    metric, reference = measured.evidence.quality.metric, reference_of(measured, trial.quality)
    views = [View("Runs", _runs_figure(measured, reference))]
    if trial.quality.estimate is not None:
        views.append(View("Difference", _difference_figure(measured, trial.quality)))
    judged = trial.judged_quality
    if (spread := evaluation_view(judged)) is not None:
        views.append(spread)
    better = "higher" if measured.evidence.quality.goal == "maximize" else "lower"
    return Chart(
        "quality",
        f"{TITLE}: {metric} ({better} is better)",
        _finding(trial.quality, reference, metric),
        note="A point is a full training run; bars are means. The difference is measured from the "
        "dashed reference; left of the dotted limit the loss exceeds the margin. "
        f"{evaluation_words(judged)}".rstrip(),
        views=views,
        choice="What to show",
    )


def _finding(quality: QualityFigures, reference: Reference | None, metric: str) -> str:
    """The difference in words, without signs to misread."""
    estimate, ends, margin = quality.estimate, quality.interval, quality.margin
    if estimate is None:
        return f"No difference in {metric} could be computed."
    text = f"Candidate {better_or_worse(estimate)}"
    if reference:
        text += f" than {reference.words}" if estimate else f" from {reference.words}"
    if ends:
        level = confidence_words(quality)
        between = f"{better_or_worse(ends[0])} and {better_or_worse(ends[1])}"
        text += f" (between {between}{level and '; ' + level})"
    return text + (f"; margin {significant(margin)}." if margin is not None else ".")


def _why_none(measured: Measured) -> str:
    if any(arm.quality for arm in measured.arms):
        return "No full run finished, so there is no final metric to compare."
    return "Full training runs were not needed: the speed gate had ended the trial before."


def _finished(runs: Sequence[FullRun]) -> list[tuple[FullRun, float]]:
    return [(run, run.metric) for run in runs if run.metric is not None]


def _runs_figure(measured: Measured, reference: Reference | None) -> Figure:
    past = measured.evidence.quality.history
    names, traces = ["past runs"] if past else [], _past_traces(past)
    for index, arm in enumerate(measured.arms):
        runs = _finished(compared_runs(measured, arm))
        if runs:
            traces += _arm_traces(len(names), index, runs)
            names.append(inert(arm.name))
    shapes, notes = _reference_lines(measured, reference) if reference else ([], [])
    return figure(
        traces,
        x={
            "tickvals": list(range(len(names))), "ticktext": names,
            "range": [-0.6, len(names) - 0.4], "showgrid": False,
            "tickfont": {"size": 12.5, "color": LIGHT["text"]},
        },
        y={"title": inert(measured.evidence.quality.metric)},
        shapes=shapes,
        annotations=notes,
        showlegend=False,
        margin={"l": 62, "r": 18, "t": 32, "b": 40},
    )  # fmt: skip


def _reference_lines(
    measured: Measured, reference: Reference
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The limit named at its line; the reference above the plot, clear of the points around it."""
    goal, margin = measured.evidence.quality.goal, measured.evidence.quality.margin
    limit = reference.value + (-margin if goal == "maximize" else margin)
    lines = [
        line_across(limit, LIGHT["limit"], "dot", 1.6),
        line_across(reference.value, LIGHT["muted"], "dash", 1.2),
    ]
    names = [
        label(f"limit {significant(limit, 4)}", LIGHT["limit"], xref="paper", x=0.5,
              xanchor="center", yref="y", y=limit,
              yanchor="top" if limit < reference.value else "bottom"),
        label(f"dashed: reference, {reference.words}", LIGHT["muted"], xref="paper", x=1,
              xanchor="right", yref="paper", y=1, yanchor="bottom", yshift=6),
    ]  # fmt: skip
    return lines, names


def _past_traces(past: Sequence[float]) -> list[dict[str, Any]]:
    """A pale first column: these runs count for less than those of today."""
    if not past:
        return []
    return [
        scatter(
            "markers", _spread(0, len(past)), past, opacity=0.6,
            marker={"symbol": "circle-open", "size": 8, "color": LIGHT["baseline"]},
            hovertemplate="past run: %{y:.5~g}<extra></extra>",
        ),
        {**_mean_line(0, past, LIGHT["baseline"]), "opacity": 0.6},
    ]  # fmt: skip


def _arm_traces(
    place: int, index: int, runs: Sequence[tuple[FullRun, float]]
) -> list[dict[str, Any]]:
    style, values = arm_style(index), [metric for _, metric in runs]
    return [
        scatter(
            "markers", _spread(place, len(runs)), values,
            customdata=[UNKNOWN if run.seed is None else run.seed for run, _ in runs],
            marker=marker(style, 9),
            hovertemplate="seed %{customdata}: %{y:.5~g}<extra></extra>",
        ),
        _mean_line(place, values, style.colour),
    ]  # fmt: skip


def _spread(place: int, count: int) -> list[float]:
    """Positions side by side around a column's middle."""
    step = min(0.08, 0.6 / count)
    return [place + step * (i - (count - 1) / 2) for i in range(count)]


def _mean_line(place: int, values: Sequence[float], colour: str) -> dict[str, Any]:
    mean = statistics.fmean(values)
    return scatter(
        "lines", [place - 0.28, place + 0.28], [mean, mean], line={"color": colour, "width": 2.4},
        hovertemplate="mean %{y:.5~g}<extra></extra>",
    )  # fmt: skip


def _difference_figure(measured: Measured, quality: QualityFigures) -> Figure:
    margin, style = measured.evidence.quality.margin, arm_style(1)
    estimate, ends = quality.estimate or 0.0, quality.interval
    marks = [estimate, 0.0, -margin, *(ends or ())]
    room = 0.12 * (max(marks) - min(marks))
    low, high = min(marks) - room, max(marks) + room
    point = scatter(
        "markers", [estimate], [0],
        error_x=error_bar(estimate, ends, style, thickness=3, width=12),
        marker={"symbol": style.symbol, "size": 14, "color": style.colour},
        hovertemplate="%{x:.4~g}<extra></extra>",
    )  # fmt: skip
    top = {"yref": "paper", "y": 1, "yanchor": "bottom"}
    return figure(
        [point],
        x={"title": "difference from the reference, right is better", "range": [low, high]},
        y={"visible": False, "range": [-1, 1]},
        shapes=[
            band_up(low, -margin, LIGHT["limit_fill"]),
            line_up(-margin, LIGHT["limit"], "dot", 1.6),
            line_up(0.0, LIGHT["axis"]),
        ],
        annotations=[
            label("beyond the margin", LIGHT["limit"], x=0, xref="paper", xanchor="left", **top),
            label("equal", LIGHT["muted"], x=0, xref="x", xanchor="left", xshift=4, **top),
            label(confidence_words(quality), style.colour, x=0.5, xref="paper", xanchor="center",
                  y=0, yref="y", yanchor="bottom", yshift=14),
        ],
        showlegend=False,
        margin={"l": 20, "r": 20, "t": 30, "b": 50},
    )  # fmt: skip
