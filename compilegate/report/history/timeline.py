"""The timeline: every record of the ledger that concerns people, in words."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.formats import duration, plural
from compilegate.domain.production.next_arm import PROBLEMS
from compilegate.domain.records.canary import CanaryClosed, CanaryRound
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.ledger import Record
from compilegate.domain.records.registrations import RegistrationChange
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from compilegate.domain.records.trials import (
    ApprovalAnswer,
    ApprovalRequested,
    TrialDecided,
    TrialFailed,
    TrialStarted,
)
from compilegate.domain.words import verdict_label
from compilegate.report.history.run_events import ended, unfinished
from compilegate.report.history.view import Event, HistoryView, fault_in

TITLES = {
    "enable": "Turned on",
    "disable": "Left off",
    "revert": "Turned off automatically",
    "permanent": "On permanently",
    "stale": "Changed since the proof",
    "resume": "Matches the proof again",
}
BY_HAND = {"set": "Turned on by hand", "revert": "Turned off by hand"}
TONES = {
    "enable": "good", "permanent": "good", "resume": "good", "revert": "bad", "stale": "open",
    "disable": "off", "set": "open",
}  # fmt: skip
MARKS = {
    "enable": "on", "revert": "off", "permanent": "on permanently", "stale": "stale",
    "resume": "resumed",
}  # fmt: skip
CLOSED_WORDS = {
    "complete": "all its runs have their results",
    "lost": "the candidate failed or ran without the change",
    "changed": "production trains another job now",
    "overdue": "its runs were not made in time",
    "aborted": "the trial was aborted",
}


def timeline(view: HistoryView) -> list[Event]:
    """Oldest first; records that only machines read are left out."""
    events = [event for record in view.history.records for event in _events(view, record)]
    return sorted(events, key=lambda event: (event.at, _rank(event)))


def _rank(event: Event) -> int:
    """Of what the ledger dates alike, a run comes first, then its review."""
    return {"run": 0, "alarm": 1, "cleared": 1, "unproven": 1}.get(event.kind, 2)


def _events(view: HistoryView, record: Record) -> Iterator[Event]:
    match record:
        case ProductionRun():
            yield ended(view, record)
        case BegunRun():
            yield from _begun(view, record)
        case CapacityWait():
            yield _waited(view, record)
        case FlagVersion():
            yield _flag_changed(view, record)
        case Review():
            yield from _reviewed(view, record)
        case RegistrationChange():
            yield _registered(view, record) if record.active else _retired(view, record)
        case TrialStarted() | TrialDecided() | TrialFailed():
            yield _trial(view, record)
        case CanaryRound():
            yield _canary_opened(view, record)
        case CanaryClosed():
            yield _canary_closed(view, record)
        case ApprovalRequested():
            text = f"“{record.candidate}” takes effect once a person approves it."
            yield _event(view, record, "Waits for approval", text, tone="open")
        case ApprovalAnswer():
            yield _answered(view, record)


def _event(view: HistoryView, record: Record, title: str, text: str, *, tone: str = "") -> Event:
    """A line of the record's own kind, placed by when it was written."""
    at = float(record.at)
    return Event(at, record.kind, title, text, tone=tone, place=view.place_at(at))


def _registered(view: HistoryView, change: RegistrationChange) -> Event:
    at, fault = float(change.at), fault_in(change)
    by = f"by {_person(change.by)}" if change.by else ""
    if fault:
        return Event(
            at, "fault", "Fault injected on purpose",
            f"From now on every job with the compiler trains with {fault} (training.environment, "
            f"registered {by}). The baseline has no fault.",
            tone="bad", place=view.place_at(at), mark="fault injected",
        )  # fmt: skip
    if fault == "":
        return Event(at, "fault", "Injected fault removed", by, place=view.place_at(at))
    names = ", ".join(str(one["field"]) for one in change.changes)
    schedule = (change.document or {}).get("schedule")
    when = f"schedule {schedule}" if schedule else "the team starts its runs"
    text = "; ".join(part for part in (by, f"changed: {names}" if names else when) if part)
    return _event(view, change, "Registered again" if names else "Registered", text)


def _retired(view: HistoryView, change: RegistrationChange) -> Event:
    at = float(change.at)
    text = f"by {_person(change.by)}; history, flag and evidence stay"
    return Event(
        at, change.kind, "Retired from production", text, tone="off", place=view.place_at(at),
        mark="retired",
    )  # fmt: skip


def _trial(view: HistoryView, record: TrialStarted | TrialDecided | TrialFailed) -> Event:
    if isinstance(record, TrialStarted):
        return _event(view, record, "Trial begins", f"trial {record.trial}")
    if isinstance(record, TrialFailed):
        return _event(view, record, f"Trial {record.trial} failed", record.reason, tone="bad")
    verdict = verdict_label(record.verdict).text.lower()
    text = "; ".join(reason.rstrip(".") for reason in record.reasons)
    return Event(
        float(record.at), record.kind, f"Trial {record.trial} decided: {verdict}", f"{text}.",
        tone="good" if record.verdict == "promote" else "open",
        place=view.place_at(float(record.at)), links=[record.decision_key],
    )  # fmt: skip


def _canary_opened(view: HistoryView, canary: CanaryRound) -> Event:
    arms = ", ".join(run.arm for run in canary.runs)
    text = f"The next {plural(len(canary.runs), 'run')} of production train in turn: {arms}."
    return _event(view, canary, "Canary runs begin", text)


def _canary_closed(view: HistoryView, closed: CanaryClosed) -> Event:
    text = CLOSED_WORDS.get(closed.reason, closed.reason)
    tone = "" if closed.reason == "complete" else "open"
    return _event(view, closed, "Canary runs end", f"{text}.", tone=tone)


def _answered(view: HistoryView, answer: ApprovalAnswer) -> Event:
    at, what = float(answer.at), "Approved" if answer.approved else "Not approved"
    text = f"by {_person(answer.by)}: {answer.reason or 'no reason recorded'}"
    return Event(at, answer.kind, what, text, place=view.place_at(at), mark=what.lower())


def _waited(view: HistoryView, wait: CapacityWait) -> Event:
    next_type = wait.next_instance_type
    again = f"tries {next_type} next" if next_type else (
        f"tries again in {duration(float(wait.wait_seconds))}"
    )  # fmt: skip
    text = f"run {wait.run}, {wait.arm}: {wait.reason}; {again}"
    return _event(view, wait, "Waits for machines", text, tone="open")


def _begun(view: HistoryView, begun: BegunRun) -> Iterator[Event]:
    if begun.flag_problem in PROBLEMS:
        at = float(begun.at)
        yield Event(
            at, "flag_problem", "Flag not followed",
            f"{begun.flag_told}; the run trains the baseline.", tone="bad",
            place=view.place_at(at), mark="flag not followed",
        )  # fmt: skip
    yield from unfinished(view, begun)


def _flag_changed(view: HistoryView, version: FlagVersion) -> Event:
    """One change of the flag: what, by whom, why, and which manual change it replaced."""
    at, action, flag = float(version.at), version.action, version.flag
    human = version.by_human
    title = (BY_HAND if human else TITLES).get(action, action.capitalize())
    if flag.candidate:
        title += f": {flag.candidate}"
    parts = [f"by {_person(version.by)}:" if human else "", version.reason.rstrip(".") + "."]
    if version.overrode:
        replaced = version.overrode
        parts.append(
            f"This replaces the change by {_person(replaced.by)}: “{replaced.reason.rstrip('.')}”."
        )
    if action == "stale":
        parts.append("The flag stays on." if flag.enabled else "The flag is off.")
    keys = ("decision_key", "evidence_key")
    return Event(
        at, "flag", title, " ".join(part for part in parts if part),
        tone="open" if human else TONES.get(action, ""), place=view.place_at(at),
        mark=f"{_person(version.by)}: {action}" if human else MARKS.get(action),
        links=[str(version.details[key]) for key in keys if version.details.get(key)],
    )  # fmt: skip


def _reviewed(view: HistoryView, review: Review) -> Iterator[Event]:
    """New alarms and results; a review that changes the flag shows as that change."""
    at, before = float(review.at), _before(view, review)
    place = _place(view, review)
    alarm, cleared = review.reason("alarm"), review.reason("alarm_cleared")
    if alarm and not (before and before.reason("alarm")):
        yield Event(at, "alarm", "Alarm", alarm, tone="bad", place=place, mark="alarm")
    elif review.message_kind == "failed":
        text = "; ".join(reason.message for reason in review.reasons)
        yield Event(at, "unproven", "Production cannot be judged", f"{text}.", "bad", place)
    if cleared and cleared != (before and before.reason("alarm_cleared")):
        yield Event(
            at, "cleared", "Alarm not confirmed", f"{cleared}; nothing was changed.",
            tone="good", place=place, mark="cleared",
        )  # fmt: skip


def _place(view: HistoryView, review: Review) -> float:
    """After the run that was reviewed."""
    own = [view.places[run.job] for run in view.runs if run.run == review.run]
    return max(own) + 0.5 if own else view.place_at(float(review.at))


def _before(view: HistoryView, review: Review) -> Review | None:
    """The review of the same trial's promotion before this one."""
    earlier = [
        one
        for one in view.history.reviews
        if one.trial == review.trial and (one.at, one.run) < (review.at, review.run)
    ]
    return earlier[-1] if earlier else None


def _person(by: str | None) -> str:
    return str(by).removeprefix(HUMAN)
