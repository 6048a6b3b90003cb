"""A workload's history: everything in its ledger, as page, Markdown and JSON."""

from __future__ import annotations

from compilegate.report import embed
from compilegate.report.history.document import document
from compilegate.report.history.markdown import markdown
from compilegate.report.history.model import HistoryContext, HistoryInput, HistoryReport
from compilegate.report.history.page import page
from compilegate.report.history.sentences import headline
from compilegate.report.history.sums import watched_sums
from compilegate.report.history.timeline import timeline
from compilegate.report.history.view import HistoryView

__all__ = ["HistoryContext", "HistoryInput", "HistoryReport", "render_history"]


def render_history(source: HistoryInput) -> HistoryReport:
    """Render the history; the same records make the same page."""
    view = HistoryView(source)
    events, sums = timeline(view), watched_sums(view)
    summary = document(view, events, sums)
    return HistoryReport(
        html=page(view, events, sums, summary),
        markdown=markdown(view, events),
        json=embed.stable_json(summary) + "\n",
        headline=headline(view),
    )
