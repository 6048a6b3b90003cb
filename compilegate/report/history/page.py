"""The history as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from compilegate.domain.formats import UNKNOWN, duration, fixed, money, shown
from compilegate.domain.words import run_reason
from compilegate.report import embed
from compilegate.report.history.charts import charts
from compilegate.report.history.metric_cards import metric_cards
from compilegate.report.history.model import Event
from compilegate.report.history.run_events import folded
from compilegate.report.history.sentences import headline, label, lede
from compilegate.report.history.sums import Sum
from compilegate.report.history.view import HistoryView, failed, problem
from compilegate.report.html import Download, render_page
from compilegate.report.model import Document
from compilegate.report.tables import Table


def page(
    view: HistoryView, events: Sequence[Event], sums: Mapping[str, Sum], summary: Document
) -> str:
    """The page; ``summary`` is the history's own JSON."""
    words, tone = label(view)
    context, name = view.source["context"], view.source["name"]
    values = {
        "workload": name,
        "stage": context["stage"],
        "simulated": context.get("simulated"),
        "label": words,
        "tone": tone,
        "headline": headline(view),
        "lede": lede(view),
        "reasons": [],
        "controls": [],
        "metric_cards": metric_cards(view),
        "not_measured": None if view.runs else "No production run has ended yet.",
        "timeline": [(moment(event.at), event) for event in folded(view, events)],
        "runs": runs_table(view),
        "downloads": [
            Download.of_text("The history", f"{name}-story.json", embed.stable_json(summary))
        ],
    }
    return render_page("story.html.j2", charts(view, events, sums), values)


def moment(at: float) -> str:
    """A time in UTC."""
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d %H:%M}"


def runs_table(view: HistoryView) -> Table | None:
    """Every run with its figures."""
    rows = [
        (
            str(place), run.arm, run_reason(run.why), state.state,
            shown(run.result.get("metric"), lambda x: fixed(x, 5)) if not failed(run) else "failed",
            shown(run.result.get("wall_seconds"), duration),
            UNKNOWN if run.usd is None else money(run.usd),
            "; ".join(_notes(view, place - 1)),
        )
        for place, (run, state) in enumerate(zip(view.runs, view.states, strict=True), 1)
    ]  # fmt: skip
    if not rows:
        return None
    columns = ("Run", "Arm", "Why", "Flag", view.metric, "Wall clock", "Cost", "Notes")
    return Table("runs", "Every production run", columns, rows, stacked=True)


def _notes(view: HistoryView, index: int) -> list[str]:
    run = view.runs[index]
    return [
        note
        for note in (
            "injected fault" if view.fault_of(run) else "",
            "checks an alarm" if run.confirm else "",
            "" if run.counts else "no evidence",
            problem(run),
        )
        if note
    ]
