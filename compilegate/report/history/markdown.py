"""The history as Markdown, short enough for a ticket."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.report.history.metric_cards import metric_cards
from compilegate.report.history.model import Event
from compilegate.report.history.page import moment
from compilegate.report.history.run_events import folded
from compilegate.report.history.sentences import headline, label, lede
from compilegate.report.history.view import HistoryView
from compilegate.report.markdown import MARKS, inert, table_lines

# Of a long history the end is what one asks for.
MOST_EVENTS = 40


def markdown(view: HistoryView, events: Sequence[Event]) -> str:
    """Headline, key figures, timeline."""
    context = view.source["context"]
    lines = [
        f"### {MARKS[label(view)[1]]} {inert(headline(view))}",
        "",
        f"**{inert(view.source['name'])}**, stage {inert(context['stage'])}. "
        f"{inert(' '.join(lede(view)))}".rstrip(),
        "",
    ]
    if context.get("simulated"):
        lines += [f"> {inert(str(context['simulated']))}", ""]
    figures = [(card.name, card.value, card.note) for card in metric_cards(view)]
    if figures:
        lines += table_lines(("Key figure", "", ""), figures)
    return "\n".join([*lines, *_timeline(folded(view, events))]).strip() + "\n"


def _timeline(events: Sequence[Event]) -> list[str]:
    if not events:
        return []
    left_out = max(0, len(events) - MOST_EVENTS)
    lines = [
        f"- {moment(event.at)} **{inert(event.title)}** {inert(event.text)}".rstrip()
        for event in events[left_out:]
    ]
    note = [f"{left_out} earlier lines are in the page and in the JSON.", ""] if left_out else []
    return ["**What happened (UTC)**", "", *note, *lines]
