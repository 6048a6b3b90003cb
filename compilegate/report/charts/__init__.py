"""The report's charts: one function per figure, each a plain plotly document."""

from __future__ import annotations

from compilegate.report.charts.base import Chart, View
from compilegate.report.charts.cost import cost_chart
from compilegate.report.charts.loss import loss_chart
from compilegate.report.charts.quality import quality_chart
from compilegate.report.charts.speedup import speedup_chart
from compilegate.report.charts.throughput import throughput_chart
from compilegate.report.charts.trace import trace_chart
from compilegate.report.measured import Measured
from compilegate.report.model import Document

__all__ = ["Chart", "View", "charts"]


def charts(decision: Document, evidence: Document | None, measured: Measured | str) -> list[Chart]:
    """Every chart of the page in reading order; empty where nothing was measured."""
    if isinstance(measured, str) or not measured.has_speed:
        return []
    return [
        throughput_chart(decision, measured),
        speedup_chart(decision, measured),
        loss_chart(measured),
        quality_chart(decision, measured),
        trace_chart(measured),
        cost_chart(decision, evidence),
    ]
