"""The history's charts, all over the same runs: quality, time, the judge's sums, money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compilegate.report.charts.base import Chart
from compilegate.report.history.charts.money import money_chart
from compilegate.report.history.charts.quality import quality_chart
from compilegate.report.history.charts.sums import sums_chart
from compilegate.report.history.charts.wall import wall_chart
from compilegate.report.history.model import Event
from compilegate.report.history.sums import Sum
from compilegate.report.history.view import HistoryView


def charts(view: HistoryView, events: Sequence[Event], sums: Mapping[str, Sum]) -> list[Chart]:
    """Every chart in reading order; none before the first run."""
    if not view.runs:
        return []
    drawn = [
        quality_chart(view, events),
        wall_chart(view, events),
        sums_chart(view, sums),
        money_chart(view),
    ]
    beside = [chart for chart in drawn if chart.views and not chart.wide]
    # Two stand side by side; one that is left over fills its line.
    alone = beside[-1] if len(beside) % 2 else None
    return [replace(chart, wide=True) if chart is alone else chart for chart in drawn]
