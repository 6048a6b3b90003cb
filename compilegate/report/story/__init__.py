"""The story of a workload: everything its ledger knows, as page, Markdown and JSON."""

from __future__ import annotations

from compilegate.report import embed
from compilegate.report.story.document import document
from compilegate.report.story.events import events
from compilegate.report.story.markdown import markdown
from compilegate.report.story.model import StoryContext, StoryInput, StoryReport
from compilegate.report.story.page import page
from compilegate.report.story.sentences import headline
from compilegate.report.story.sums import watched_sums
from compilegate.report.story.tale import Tale

__all__ = ["StoryContext", "StoryInput", "StoryReport", "render_story"]


def render_story(source: StoryInput) -> StoryReport:
    """Tell the story from its records; the same records tell the same story."""
    tale = Tale(source)
    told, sums = events(tale), watched_sums(tale)
    summary = document(tale, told, sums)
    return StoryReport(
        html=page(tale, told, sums, summary),
        markdown=markdown(tale, told),
        json=embed.stable_json(summary) + "\n",
        headline=headline(tale),
    )
