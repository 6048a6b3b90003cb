"""The report's charts: one function per figure, drawn as SVG by ``svg``."""

from __future__ import annotations

from compilegate.report.charts.cost import cost_chart
from compilegate.report.charts.curves import loss_chart, trace_chart
from compilegate.report.charts.figure import Chart
from compilegate.report.charts.quality import quality_chart
from compilegate.report.charts.speed import speedup_chart, throughput_chart
from compilegate.report.trial_report import TrialReport


def charts(trial: TrialReport) -> list[Chart]:
    """Every chart of the page in reading order; empty where nothing was measured."""
    measured = trial.measured
    if measured is None or not measured.has_speed:
        return []
    return [
        throughput_chart(trial, measured),
        speedup_chart(trial, measured),
        loss_chart(measured),
        quality_chart(trial, measured),
        trace_chart(measured),
        cost_chart(trial),
    ]
