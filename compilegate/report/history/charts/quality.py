"""Quality of every run against the rolling baseline and the margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compilegate.domain.formats import number, plural, shown, significant
from compilegate.report.charts.base import Chart, Frame, View, figure, inert
from compilegate.report.charts.palette import LIGHT
from compilegate.report.history.charts.frame import (
    bands,
    marks,
    points,
    room,
    runs_axis,
    standard_line,
)
from compilegate.report.history.model import Event
from compilegate.report.history.sentences import difference, mean_quality
from compilegate.report.history.view import HistoryView, failed


def quality_chart(view: HistoryView, events: Sequence[Event]) -> Chart:
    """A point a run; what lies beyond the margin is worse than what was agreed to."""
    title = f"Quality, run by run: {view.metric}"
    chosen = [
        (run, value) for run in view.runs if (value := number(run.result.get("metric"))) is not None
    ]
    if not chosen:
        return Chart("quality", title, "", missing=f"No run has recorded {view.metric} yet.")
    goal = "higher" if view.quality.get("goal") == "maximize" else "lower"
    shapes, names = bands(view)
    lines, mark_names = marks(view, events, named=True)
    values = [standard.metric for standard in view.standards]
    band = _margin(view, values)
    # The margin belongs into view: without it two runs that differ by nothing fill the chart.
    seen = [value for _, value in chosen] + [y for trace in band for y in trace["y"]]
    drawn = figure(
        [
            *band,
            standard_line(values, "rolling baseline"),
            *points(view, chosen, f"{inert(view.metric)} %{{y:.5~g}}"),
        ],
        Frame(
            x=runs_axis(view),
            y={"title": inert(view.metric), "range": room(seen)},
            shapes=[*shapes, *lines],
            annotations=[*names, *mark_names],
            extra=WITH_MARKS,
        ),
    )
    margin = shown(view.quality.get("margin"), significant)
    return Chart(
        "quality", f"{title} ({goal} is better)", _finding(view), views=[View("Runs", drawn)],
        note=f"Dashed: mean of the latest baseline runs. Grey band: worse than that by up to the "
        f"margin of {margin}. Background: the state of the flag when the run began.",
        height=400, wide=True,
    )  # fmt: skip


# Three rows of names above the plot, the legend under it.
WITH_MARKS: dict[str, Any] = {
    "margin": {"l": 56, "r": 18, "t": 56, "b": 84},
    "legend": {
        "orientation": "h", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top",
        "font": {"size": 12}, "bgcolor": "rgba(0,0,0,0)",
    },
}  # fmt: skip


def _margin(view: HistoryView, values: Sequence[float | None]) -> list[dict[str, Any]]:
    """The band from the rolling baseline to where it would be worse by the margin."""
    margin = number(view.quality.get("margin"))
    if margin is None:
        return []
    sign = 1 if view.quality.get("goal") == "minimize" else -1
    drawn_points = [(place, value) for place, value in enumerate(values, 1) if value is not None]
    base = {
        "type": "scatter", "mode": "lines", "x": [place for place, _ in drawn_points],
        "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip
    return [
        {**base, "y": [value for _, value in drawn_points], "line": {"width": 0, "shape": "hvh"}},
        {
            **base, "y": [value + sign * margin for _, value in drawn_points], "fill": "tonexty",
            "fillcolor": LIGHT["baseline_fill"], "showlegend": True, "name": "margin",
            "line": {"color": LIGHT["limit"], "width": 1.4, "dash": "dot", "shape": "hvh"},
        },
    ]  # fmt: skip


def _finding(view: HistoryView) -> str:
    means = mean_quality(view)
    lost = sum(failed(run) for run in view.runs)
    text = ""
    if means is not None:
        text = f"With it {difference(view, means)} on average than the baseline runs beside it."
    return text + (f" {plural(lost, 'run')} failed and left no figure." if lost else "")
