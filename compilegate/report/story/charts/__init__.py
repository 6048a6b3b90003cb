"""The story's charts, all over the same runs: quality, time, the judge's sums, money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compilegate.report.charts.base import Chart
from compilegate.report.story.charts.money import money_chart
from compilegate.report.story.charts.quality import quality_chart
from compilegate.report.story.charts.sums import sums_chart
from compilegate.report.story.charts.wall import wall_chart
from compilegate.report.story.model import Event
from compilegate.report.story.sums import Sum
from compilegate.report.story.tale import Tale


def charts(tale: Tale, told: Sequence[Event], sums: Mapping[str, Sum]) -> list[Chart]:
    """Every chart in reading order; none before the first run."""
    if not tale.runs:
        return []
    found = [
        quality_chart(tale, told),
        wall_chart(tale, told),
        sums_chart(tale, sums),
        money_chart(tale),
    ]
    beside = [chart for chart in found if chart.views and not chart.wide]
    # Two stand side by side; one that is left over fills its line.
    alone = beside[-1] if len(beside) % 2 else None
    return [replace(chart, wide=True) if chart is alone else chart for chart in found]
