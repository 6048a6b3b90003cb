"""The story as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from compilegate.report import embed
from compilegate.report.formats import UNKNOWN, duration, fixed, money, shown
from compilegate.report.html import Download, render_page
from compilegate.report.model import Document
from compilegate.report.run_words import why
from compilegate.report.story.charts import charts
from compilegate.report.story.model import Event
from compilegate.report.story.run_events import folded
from compilegate.report.story.sentences import headline, label, lede
from compilegate.report.story.sums import Sum
from compilegate.report.story.tale import Tale, failed, problem
from compilegate.report.story.tiles import tiles
from compilegate.report.tables import Table


def page(tale: Tale, told: Sequence[Event], sums: Mapping[str, Sum], summary: Document) -> str:
    """The page; ``summary`` is the story's own JSON."""
    words, tone = label(tale)
    context, name = tale.source["context"], tale.source["name"]
    values = {
        "workload": name,
        "stage": context["stage"],
        "simulated": context.get("simulated"),
        "label": words,
        "tone": tone,
        "headline": headline(tale),
        "lede": lede(tale),
        "reasons": [],
        "controls": [],
        "tiles": tiles(tale),
        "not_measured": None if tale.runs else "No production run has ended yet.",
        "timeline": [(moment(event.at), event) for event in folded(tale, told)],
        "runs": runs_table(tale),
        "downloads": [
            Download.of_text("The story", f"{name}-story.json", embed.stable_json(summary))
        ],
    }
    return render_page("story.html.j2", charts(tale, told, sums), values)


def moment(at: float) -> str:
    """A time in UTC."""
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d %H:%M}"


def runs_table(tale: Tale) -> Table | None:
    """Every run with its figures."""
    rows = [
        (
            str(place), run.arm, why(run.why), state.state,
            shown(run.result.get("metric"), lambda x: fixed(x, 5)) if not failed(run) else "failed",
            shown(run.result.get("wall_seconds"), duration),
            UNKNOWN if run.usd is None else money(run.usd),
            "; ".join(_notes(tale, place - 1)),
        )
        for place, (run, state) in enumerate(zip(tale.runs, tale.states, strict=True), 1)
    ]  # fmt: skip
    if not rows:
        return None
    columns = ("Run", "Arm", "Why", "Flag", tale.metric, "Wall clock", "Cost", "Notes")
    return Table("runs", "Every production run", columns, rows, stacked=True)


def _notes(tale: Tale, index: int) -> list[str]:
    run = tale.runs[index]
    return [
        note
        for note in (
            "injected fault" if tale.fault_of(run) else "",
            "checks an alarm" if run.confirm else "",
            "" if run.counts else "no evidence",
            problem(run),
        )
        if note
    ]
