"""The history in a sentence that a manager understands, a few more under it, and key figures."""

from __future__ import annotations

import math
from collections import Counter

from compilegate.domain.arithmetic import mean
from compilegate.domain.claims import ALARM, FLAG_STATES, Label, verdict_label
from compilegate.domain.flag_change import EVALUATE
from compilegate.domain.judging.evidence import mean_or_none
from compilegate.domain.production.savings import failed, metric_of, wall_seconds_of
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements
from compilegate.report.history.view import HistoryView
from compilegate.report.metric_cards import MetricCard
from compilegate.report.text import paragraph, paragraphs, rows


def label(view: HistoryView) -> Label:
    """Where it stands in two or three words, with their tone."""
    if view.history.is_retired:
        return Label("Retired", "off")
    if not view.flags and not view.runs:
        return Label("Not started", "off")
    if _alarmed(view):
        return ALARM
    state = view.flag.state
    if state == "reverted" and view.flags[-1].by_human:
        return Label("Turned off by hand", "off")
    return FLAG_STATES.get(state, Label(state, "open"))


def headline(view: HistoryView) -> str:
    """One sentence; of a retired workload, its last state."""
    state = paragraph(
        "history_headline", view=view, cause=_cause(view), alarmed=_alarmed(view),
        last_reason=lambda code: _last_reason(view, code),
    )  # fmt: skip
    if view.history.is_retired:
        return f"Retired; before that: {state[0].lower()}{state[1:]}"
    return state


def _cause(view: HistoryView) -> str:
    """The first reason of the trial or review that changed the flag, else the recorded text."""
    if not view.flags:
        return ""
    version = view.flags[-1]
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
    return view.flag.enabled and bool(_last_reason(view, "alarm"))


def _last_reason(view: HistoryView, code: str) -> str:
    return (view.reviews[-1].reason(code) or "") if view.reviews else ""


def lede(view: HistoryView) -> list[str]:
    """What led to it, each sentence left out where nothing is recorded."""
    faulty = view.faulty
    alarms = (review for review in view.reviews if review.reason("alarm"))
    # That of a faulty run, or a later one.
    alarm = next((one for one in alarms if faulty and one.at >= int(faulty[0].ended_at)), None)
    return paragraphs(
        "history_lede", view=view, faults=sorted({str(view.fault_of(run)) for run in faulty}),
        faulty=sum(run.ended_at <= alarm.at + 1 for run in faulty) if alarm else 0,
        verdict_label=verdict_label,
    )  # fmt: skip


def quality_difference(view: HistoryView) -> str | None:
    """The candidate's mean metric since the promotion minus the baseline's."""
    metrics = [(run.arm == BASELINE, metric_of(run)) for run in view.since_promotion if run.counts]
    ours, theirs = (
        mean_or_none([value for is_base, value in metrics if value is not None and is_base is side])
        for side in (False, True)
    )
    return None if ours is None or theirs is None else statements.delta(ours - theirs)


def metric_cards(view: HistoryView) -> list[MetricCard]:
    """Where it stands, how production does, what it is worth; empty before the first run."""
    if not view.runs:
        return []
    gains = [gain for _, gain in speedups(view)]
    put = rows(
        "history_cards", view=view, lost_runs=sum(failed(run) for run in view.runs),
        difference=quality_difference(view), gains=len(gains),
        made=Counter(run.arm for run in view.runs),
        average=math.exp(mean([math.log(gain) for gain in gains])) if gains else None,
    )  # fmt: skip
    return [MetricCard(*row) for row in put]


def speedups(view: HistoryView) -> list[tuple[int, float]]:
    """(run number, speed-up against the rolling baseline) of every finished candidate's run."""
    gains = []
    for place, (run, standard) in enumerate(zip(view.runs, view.standards, strict=True), 1):
        wall = wall_seconds_of(run)
        if wall is None or standard.wall_seconds is None:
            continue
        if run.arm != BASELINE and run.finished and run.counts:
            gains.append((place, standard.wall_seconds / wall))
    return gains
