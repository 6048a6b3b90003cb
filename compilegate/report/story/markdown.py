"""The story as Markdown, short enough for a ticket."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.report.markdown import MARKS, inert, table_lines
from compilegate.report.story.model import Event
from compilegate.report.story.page import moment
from compilegate.report.story.run_events import folded
from compilegate.report.story.sentences import headline, label, lede
from compilegate.report.story.tale import Tale
from compilegate.report.story.tiles import tiles

# Of a long story the end is what one asks for.
MOST_EVENTS = 40


def markdown(tale: Tale, told: Sequence[Event]) -> str:
    """Headline, key figures, timeline."""
    context = tale.source["context"]
    lines = [
        f"### {MARKS[label(tale)[1]]} {inert(headline(tale))}",
        "",
        f"**{inert(tale.source['name'])}**, stage {inert(context['stage'])}. "
        f"{inert(' '.join(lede(tale)))}".rstrip(),
        "",
    ]
    if context.get("simulated"):
        lines += [f"> {inert(str(context['simulated']))}", ""]
    figures = [(tile.name, tile.value, tile.note) for tile in tiles(tale)]
    if figures:
        lines += table_lines(("Key figure", "", ""), figures)
    return "\n".join([*lines, *_timeline(folded(tale, told))]).strip() + "\n"


def _timeline(told: Sequence[Event]) -> list[str]:
    if not told:
        return []
    left_out = max(0, len(told) - MOST_EVENTS)
    lines = [
        f"- {moment(event.at)} **{inert(event.title)}** {inert(event.text)}".rstrip()
        for event in told[left_out:]
    ]
    note = [f"{left_out} earlier lines are in the page and in the JSON.", ""] if left_out else []
    return ["**What happened (UTC)**", "", *note, *lines]
