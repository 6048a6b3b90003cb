"""A trial's report: one self-contained HTML page, Markdown for a pull request, JSON, a message."""

from __future__ import annotations

from compilegate.report.assets import plotly_javascript
from compilegate.report.model import Context, Report, ReportInput
from compilegate.report.render import render

__all__ = ["Context", "Report", "ReportInput", "plotly_javascript", "render"]
