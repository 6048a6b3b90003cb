"""The history as one HTML page, as Markdown, and as JSON for programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.claims import (
    ALARM,
    FLAG_STATES,
    Label,
    command_at,
    run_reason,
    verdict_label,
)
from compilegate.domain.flag_change import EVALUATE
from compilegate.domain.formats import count, duration, fixed, money, shown
from compilegate.domain.naming import history_key
from compilegate.domain.optional import map_optional
from compilegate.domain.production.savings import (
    Savings,
    failed,
    problem_of,
    wall_seconds_of,
)
from compilegate.domain.utc import bare_minute
from compilegate.report import markup
from compilegate.report.history.charts import charts
from compilegate.report.history.timeline import Timeline, folded, timeline
from compilegate.report.history.view import (
    MOST_LISTED,
    MOST_SHOWN,
    Event,
    HistoryView,
)
from compilegate.report.tables import Table
from compilegate.report.trial_report import Document
from compilegate.report.words import MetricCard, figures_of

# Markdown keeps the end of a long history.
MOST_EVENTS = 40


@dataclass(frozen=True)
class HistoryReport(markup.Page):
    """``headline`` is the history in one sentence."""

    headline: str


def render_history(view: HistoryView) -> HistoryReport:
    """Render the history; the same records make the same page."""
    happened = timeline(view)
    summary = _document(view, happened)
    text, every = markup.stable_json(summary), folded(view, happened.events)
    values = _values(view, happened, every, summary, text)
    left_out = max(0, len(every) - MOST_EVENTS)
    return HistoryReport(
        html=markup.render_page("history.html.j2", charts(view, happened.events), values),
        markdown=markup.markdown(
            "history", **values, lines=every[left_out:], figures=figures_of(values["metric_cards"]),
            omitted=_left_out(left_out, happened.left_out).strip(),
        ),
        json=text + "\n",
        headline=values["headline"],
    )  # fmt: skip


def _document(view: HistoryView, happened: Timeline) -> dict[str, Any]:
    """Headline, flag, the latest runs and events, savings and sums."""
    flag, savings = view.history.flag, view.savings
    skipped = max(0, len(view.runs) - MOST_LISTED)
    runs = zip(view.runs[skipped:], view.states[skipped:], strict=True)
    return {
        "schema": 1,
        "workload": view.name,
        "stage": view.stage,
        "simulated": view.simulated,
        "simulated_clock": view.ahead,
        "label": label(view).text,
        "headline": headline(view),
        "lede": lede(view),
        "flag": {"enabled": flag.enabled, "state": flag.state, "candidate": flag.candidate,
                 "since": flag.since},
        "promoted_by_trial": view.promotion.trial if view.promotion else None,
        "quality": dict(view.quality),
        "runs": [
            {
                "number": place, "run": run.run, "job": run.job, "arm": run.arm, "why": run.why,
                "confirm": run.confirm, "counts": run.counts, "finished": run.finished,
                "metric": view.reached(run), "wall_seconds": wall_seconds_of(run),
                "usd": run.usd, "started_at": run.started_at, "flag_state": state.state,
                "scheduled": run.details.get("scheduled"), "injected_fault": view.fault_of(run),
                "launched_by": run.launched_by, "reason": run.reason,
                "compile_bundle": run.details.get("compile_bundle"),
            }
            for place, (run, state) in enumerate(runs, skipped + 1)
        ],
        "runs_left_out": skipped,
        "events": [
            {name: getattr(event, name)
             for name in ("at", "kind", "title", "text", "tone", "place", "links")}
            for event in happened.events
        ],
        "events_left_out": happened.left_out,
        "savings": map_optional(savings, Savings.to_dict),
        "sums": {
            key: asdict(replace(one, points=one.points[-MOST_LISTED:]))
            for key, one in view.sums.items()
        },
    }  # fmt: skip


def _values(
    view: HistoryView, happened: Timeline, lines: Sequence[Event], document: Document, text: str
) -> dict[str, Any]:
    """What the page and the ticket show; ``text`` is the document for programs."""
    runs, place = document["runs"], history_key(view.name, "json")
    downloads = [markup.Download.of("The history", f"{view.name}-history.json", text, place=place)]
    if runs:
        few = len(runs) < len(view.runs)
        every = f"The latest {count(len(runs))} runs" if few else "Every run"
        table = markup.csv_text(list(runs[0]), runs)
        downloads.append(markup.Download.of(every, f"{view.name}-runs.csv", table, place=place))
    return {
        **{key: document[key] for key in ("workload", "stage", "simulated", "headline", "lede")},
        "label": label(view).text,
        "tone": label(view).tone,
        "metric_cards": metric_cards(view),
        "not_measured": _not_drawn(view),
        "facts": markup.rows("history_facts", workload=view.workload or {}),
        "next": (command_at(f"compilegate status {view.name}", view.stage), "how it stands now"),
        "timeline": [
            (
                bare_minute(event.at),
                event,
                [
                    markup.kept_at(key, region=view.region, bucket=view.bucket)
                    for key in event.links
                ],
            )
            for event in lines[-MOST_SHOWN:]
        ],
        "timeline_note": _left_out(max(0, len(lines) - MOST_SHOWN), happened.left_out),
        "runs": _runs_table(view),
        "downloads": downloads,
    }


def _not_drawn(view: HistoryView) -> str:
    """What charts and table do not show, empty where they show every run."""
    if not view.left_out:
        return "" if view.runs else "No production run has ended yet."
    return (
        f"Of {count(len(view.runs))} runs, charts and table show the latest {count(MOST_SHOWN)}. "
        "Figures and sums are of all."
    )


def _left_out(lines: int, events: int) -> str:
    """What a list of lines leaves out, empty where it has all of them."""
    here = f"Earlier lines that are left out here: {count(lines)}. " if lines else ""
    ledger = f"Events before them, in the ledger alone: {count(events)}. " if events else ""
    return here + ledger


def _runs_table(view: HistoryView) -> Table | None:
    skipped = view.left_out
    runs = zip(view.runs[view.left_out :], view.states[skipped:], strict=True)
    listed = [
        (
            str(place), run.arm, run_reason(run.why), state.state,
            shown(view.reached(run), lambda x: fixed(x, 5)) if not failed(run) else "failed",
            shown(wall_seconds_of(run), duration),
            shown(run.usd, money),
            "; ".join(filter(None, (
                "injected fault" if view.fault_of(run) else "",
                "checks an alarm" if run.confirm else "",
                "" if run.counts else "no evidence",
                problem_of(run),
            ))),
        )
        for place, (run, state) in enumerate(runs, skipped + 1)
    ]  # fmt: skip
    if not listed:
        return None
    columns = ("Run", "Arm", "Why", "Flag", view.metric, "Wall clock", "Cost", "Notes")
    every = (
        f"The latest {count(len(listed))} production runs" if skipped else "Every production run"
    )
    return Table("runs", every, columns, listed, stacked=True, note=_not_drawn(view))


# The history in a sentence that a manager understands, a few more under it, and key figures.


def label(view: HistoryView) -> Label:
    """Where it stands in two or three words, with their tone."""
    if view.history.is_retired:
        return Label("Retired", "off")
    if not view.history.flags and not view.runs:
        return Label("Not started", "off")
    if _alarmed(view):
        return ALARM
    state = view.history.flag.state
    if state == "reverted" and view.history.flags[-1].by_human:
        return Label("Turned off by hand", "off")
    return FLAG_STATES[state]


def headline(view: HistoryView) -> str:
    """One sentence; of a retired workload, its last state."""
    state = markup.paragraph(
        "history_headline", view=view, cause=_cause(view), alarmed=_alarmed(view),
        last_reason=lambda code: _last_reason(view, code),
    )  # fmt: skip
    if view.history.is_retired:
        return f"Retired; before that: {state[0].lower()}{state[1:]}"
    return state


def _cause(view: HistoryView) -> str:
    """The first reason of the trial or review that changed the flag, else the recorded text."""
    if not view.history.flags:
        return ""
    version = view.history.flags[-1]
    if version.by == EVALUATE:
        decided = view.history.decided
        messages = [text for one in decided if one.trial == version.trial for text in one.reasons]
    else:
        messages = [
            reason.message
            for review in view.reviews
            if review.transition and review.transition.change_id == version.change_id
            for reason in review.reasons
        ]
    return (messages or [version.reason])[0].strip().rstrip(".")


def _alarmed(view: HistoryView) -> bool:
    return view.history.flag.enabled and bool(_last_reason(view, "alarm"))


def _last_reason(view: HistoryView, code: str) -> str | None:
    return view.reviews[-1].reason(code) if view.reviews else None


def lede(view: HistoryView) -> list[str]:
    """What led to it, each sentence left out where nothing is recorded."""
    faulty = view.faulty
    alarms = (review for review in view.reviews if review.reason("alarm"))
    # That of a faulty run, or a later one.
    alarm = next((one for one in alarms if faulty and one.at >= int(faulty[0].ended_at)), None)
    return markup.paragraphs(
        "history_lede", view=view, faults=sorted({str(view.fault_of(run)) for run in faulty}),
        faulty=sum(run.ended_at <= alarm.at + 1 for run in faulty) if alarm else 0,
        verdict_label=verdict_label,
    )  # fmt: skip


def metric_cards(view: HistoryView) -> list[MetricCard]:
    """Where it stands, how production does, what it is worth; empty before the first run."""
    if not view.runs:
        return []
    gains = [gain for _, gain in view.speedups]
    put = markup.rows(
        "history_cards", view=view, lost_runs=sum(failed(run) for run in view.runs),
        difference=view.quality_difference, gains=len(gains),
        made=Counter(run.arm for run in view.runs),
        average=math.exp(mean([math.log(gain) for gain in gains])) if gains else None,
    )  # fmt: skip
    return [MetricCard(*row) for row in put]
