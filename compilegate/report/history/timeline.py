"""The timeline: every record of the ledger that concerns people, in words."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from itertools import groupby
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.claims import run_reason, verdict_label
from compilegate.domain.decision import Verdict
from compilegate.domain.judging.monitor import FIRST, LAST
from compilegate.domain.optional import without_none
from compilegate.domain.production.begin import PROBLEMS
from compilegate.domain.production.review import SLOWER
from compilegate.domain.production.savings import (
    compiled_anew,
    failed,
    problem_of,
    wall_seconds_of,
)
from compilegate.domain.reasons import advice
from compilegate.domain.records import production, trials
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.ledger import DamagedRecord, Record, Unlocked
from compilegate.domain.utc import bare_minute
from compilegate.domain.wording import fill, sentences
from compilegate.report import wording
from compilegate.report.history.view import MOST_LISTED, Event, HistoryView, fault_in

say = partial(wording.say, "history")

# Reasons of uneventful runs; this many in a row or more make one line.
UNEVENTFUL, ROW = ("scheduled", "flag", "refresh", "holdback"), 4


# Of the same moment, a run comes first, then its review.
RANKS = {"run": 0, "alarm": 1, "cleared": 1, "unproven": 1}


@dataclass(frozen=True)
class Timeline:
    """The latest events, oldest first; so many earlier ones are left out."""

    events: Sequence[Event]
    left_out: int


def timeline(view: HistoryView) -> Timeline:
    """What the ledger says, in the order of time; records that only machines read are left out."""
    latest: deque[Event] = deque(maxlen=MOST_LISTED)
    number = 0
    # The records are in the order of time; of each moment, the events are put into theirs.
    for _, moment in groupby(view.history.records, key=lambda record: record.at):
        events = [event for record in moment for event in _events(view, record)]
        events.sort(key=lambda event: RANKS.get(event.kind, 2))
        latest.extend(events)
        number += len(events)
    return Timeline(tuple(latest), number - len(latest))


def folded(view: HistoryView, events: Sequence[Event]) -> list[Event]:
    """The timeline with each long row of uneventful runs as one line."""
    lines: list[Event] = []
    row: list[Event] = []
    for event in events:
        if event.quiet:
            row.append(event)
            continue
        # The run that raised the alarm keeps its own line.
        kept = int(event.kind == "alarm")
        lines += [*_row(view, row[: len(row) - kept]), *row[len(row) - kept :], event]
        row = []
    return [*lines, *_row(view, row)]


def _row(view: HistoryView, row: Sequence[Event]) -> list[Event]:
    if len(row) < ROW:
        return list(row)
    first, last = int(row[0].place), int(row[-1].place)
    arms: dict[str, list[float]] = {}
    for event in row:
        run = view.runs[int(event.place) - 1]
        metrics = arms.setdefault(run.arm, [])
        metrics += without_none([view.reached(run)])
    made = Counter(view.runs[int(event.place) - 1].arm for event in row)
    parts = [
        say("row_of_runs", runs=made[arm], arm=arm, metric=view.metric,
            mean=mean(values) if values else None)
        for arm, values in arms.items()
    ]  # fmt: skip
    title, text = say("row_title", first=first, last=last), f"{'; '.join(parts)}."
    return [Event(row[-1].at, "run", title, text, place=float(last))]


# Records whose line shows what they hold; the lines of others are put together.
PLAIN = {
    trials.ApprovalRequested: "approval_requested", trials.TrialFailed: "trial_failed",
    trials.TrialStarted: "trial_begun", Unlocked: "unlocked",
}  # fmt: skip


def _events(view: HistoryView, record: Record) -> Iterator[Event]:
    event = partial(_event, view, record)
    match record:
        case production.ProductionRun():
            yield _ended(view, record)
        case production.BegunRun():
            if record.flag_problem in PROBLEMS:
                yield event("flag_not_followed", problem=record.flag_explanation)
            if record.run not in view.history.ended_runs:
                yield event("run_begun", why=run_reason(record.why))
        case production.CapacityWait(wait_seconds=seconds, next_instance_type=following):
            yield event("waits", next=following, seconds=None if following else float(seconds))
        case production.IgnoredJob():
            yield event("ignored", advice=advice(record.code))
        case FlagVersion():
            yield _flag_changed(view, record)
        case production.Review():
            yield from _reviewed(view, record)
        case production.RegistrationChange():
            yield _registered(view, record)
        case DamagedRecord():
            yield event("damaged", problem=record.problem)
        case _:
            yield from _of_a_trial(event, record)


def _of_a_trial(event: Callable[..., Event], record: Record) -> Iterator[Event]:
    match record:
        case trials.TrialDecided():
            verdict = verdict_label(record.verdict).text.lower()
            text = "; ".join(reason.rstrip(".") for reason in record.reasons)
            decided = event("trial_decided", verdict=verdict, reasons=text)
            tone = "good" if record.verdict == Verdict.PROMOTE else "open"
            yield replace(decided, tone=tone, links=[record.decision_key])
        case production.CanaryRound():
            arms = ", ".join(run.arm for run in record.runs)
            yield event("canary_begun", runs=len(record.runs), arms=arms)
        case production.CanaryClosed():
            yield event(_or_plain(f"canary_{record.reason}", "canary_ended"))
        case trials.ApprovalAnswer():
            reason = record.reason or "no reason recorded"
            yield event("approved" if record.approved else "not_approved", reason=reason)
        case _ if type(record) in PLAIN:
            yield event(PLAIN[type(record)])


def _event(view: HistoryView, record: Record, what: str, **values: Any) -> Event:
    """A line of the record's own kind, placed by when it was written, with what it holds."""
    at, by = float(record.at), str(getattr(record, "by", None) or "").removeprefix(HUMAN)
    values = {**vars(record), "by": by, **values}
    event = Event(at, record.kind, "", place=view.place_at(at))
    row: dict[str, Any] = {key: fill(text, values) for key, text in event_row(what).items()}
    return replace(event, **row)


@cache
def event_row(what: str) -> Mapping[str, str]:
    """The templates of an event, with those of the event that it is like."""
    row = dict(sentences(wording.FILE)["events"][what])
    like = row.pop("like", None)
    return {**event_row(like), **row} if like else row


def _or_plain(what: str, otherwise: str) -> str:
    return what if what in sentences(wording.FILE)["events"] else otherwise


def _ended(view: HistoryView, run: production.ProductionRun) -> Event:
    place, fault, bad = view.places[run.job], view.fault_of(run), failed(run)
    scheduled, cold = run.details.get("scheduled"), compiled_anew(run)
    sound = run.finished and run.counts and not run.confirm and fault is None
    event = _event(
        view, run, "run_failed" if bad else "run", number=place, why=run_reason(run.why),
        metric=view.metric, value=view.reached(run), wall=wall_seconds_of(run),
        fault=fault, team=run.launched_by == production.TEAM,
        checks=run.confirm, problem=problem_of(run), no_evidence=not run.counts,
        cold=cold,
        due=bare_minute(datetime.fromisoformat(scheduled).timestamp()) if scheduled else None,
    )  # fmt: skip
    return replace(
        event, place=float(place),
        quiet=sound and run.why in UNEVENTFUL and not cold
        and run.launched_by != production.TEAM,
    )  # fmt: skip


def _registered(view: HistoryView, change: production.RegistrationChange) -> Event:
    event, fault = partial(_event, view, change), fault_in(change)
    names = ", ".join(str(one["field"]) for one in change.changes)
    schedule = (change.document or {}).get("schedule")
    if not change.active:
        return event("retired")
    if fault:
        return event("fault", fault=fault)
    if fault == "":
        return event("fault_removed")
    if names:
        return event("registered_again", names=names)
    return event("registered", schedule=schedule, team=not schedule)


def _flag_changed(view: HistoryView, version: FlagVersion) -> Event:
    """One change of the flag: what, by whom, why, and which manual change it replaced."""
    action, flag, replaced = version.action, version.flag, version.overrode
    automatic, by_hand = (
        _or_plain(f"{opening}_{action}", opening) for opening in ("flag", "by_hand")
    )
    title = fill(event_row(automatic)["title"], {"candidate": "", "title": action.capitalize()})
    links = [version.details.get(key) for key in ("decision_key", "evidence_key")]
    event = _event(
        view, version, by_hand if version.by_human else automatic,
        title=title, candidate=flag.candidate,
        reason=version.reason.rstrip("."),
        replaced=replaced and replaced.by.removeprefix(HUMAN),
        replaced_reason=replaced and replaced.reason.rstrip("."),
        on=flag.enabled, off=not flag.enabled,
    )  # fmt: skip
    return replace(event, links=[str(link) for link in links if link])


def _reviewed(view: HistoryView, review: production.Review) -> Iterator[Event]:
    """New alarms and results, after the reviewed run; a change of the flag has its own line."""
    place, codes_before = view.place_of(review), view.codes_before[review.key]
    alarm, cleared = review.reason("alarm"), review.reason("alarm_cleared")
    if alarm and "alarm" not in codes_before:
        yield replace(
            _event(view, review, "alarm", alarm=alarm, first=FIRST, last=LAST), place=place
        )
    elif review.message_kind == SLOWER:
        text = "; ".join(note.message for note in review.notes)
        yield replace(_event(view, review, "slower", reasons=text), place=place)
    elif review.message_kind == "failed":
        text = "; ".join(reason.message for reason in review.reasons)
        yield replace(_event(view, review, "unproven", reasons=text), place=place)
    # Once cleared, an alarm is counted in every later review.
    if cleared and ("alarm_cleared" not in codes_before or "alarm" in codes_before - review.codes):
        yield replace(_event(view, review, "cleared", cleared=cleared), place=place)
