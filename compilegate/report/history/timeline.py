"""The timeline: every record of the ledger that concerns people, in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.decision import Verdict
from compilegate.domain.formats import duration, fixed, money, plural
from compilegate.domain.production.next_arm import PROBLEMS
from compilegate.domain.production.run_figures import failed, metric_of, problem_of, wall_seconds_of
from compilegate.domain.reasons import advice
from compilegate.domain.records.canary import CanaryClosed, CanaryRound
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.ledger import DamagedRecord, Record, Unlocked
from compilegate.domain.records.registrations import RegistrationChange
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.runs import TEAM, BegunRun, CapacityWait, IgnoredJob, ProductionRun
from compilegate.domain.records.trials import (
    ApprovalAnswer,
    ApprovalRequested,
    TrialDecided,
    TrialFailed,
    TrialStarted,
)
from compilegate.domain.utc import bare_minute
from compilegate.domain.words import run_reason, verdict_label
from compilegate.report.history.view import (
    MOST_LISTED,
    Event,
    HistoryView,
    fault_in,
)

# Of each action on the flag: title, tone and short name in the charts.
FLAG_ACTIONS: dict[str, tuple[str, str, str | None]] = {
    "enable": ("Turned on", "good", "on"),
    "disable": ("Left off", "off", None),
    "revert": ("Turned off automatically", "bad", "off"),
    "permanent": ("On permanently", "good", "on permanently"),
    "stale": ("Changed since the proof", "open", "stale"),
    "resume": ("Matches the proof again", "good", "resumed"),
}
BY_HAND = {"set": "Turned on by hand", "revert": "Turned off by hand"}
CLOSED_WORDS = {
    "complete": "all its runs have their results",
    "lost": "the candidate failed or ran without the change",
    "changed": "production trains another job now",
    "overdue": "its runs were not made in time",
    "aborted": "the trial was aborted",
}
# Reasons of uneventful runs; this many in a row or more make one line.
UNEVENTFUL, ROW = ("scheduled", "flag", "refresh"), 4


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
        kept = 1 if event.kind == "alarm" and row else 0
        lines += [*_row(view, row[: len(row) - kept]), *row[len(row) - kept :], event]
        row = []
    return [*lines, *_row(view, row)]


def _row(view: HistoryView, row: Sequence[Event]) -> list[Event]:
    if len(row) < ROW:
        return list(row)
    runs = [view.runs[int(event.place) - 1] for event in row]
    first, last = int(row[0].place), int(row[-1].place)
    parts = []
    arms: dict[str, list[float | None]] = {}
    for run in runs:
        arms.setdefault(run.arm, []).append(metric_of(run))
    for arm, metrics in arms.items():
        values = [value for value in metrics if value is not None]
        average = f", {view.metric} {fixed(mean(values))} on average" if values else ""
        parts.append(f"{plural(len(metrics), 'run')} of {arm}{average}")
    title, text = f"Runs {first} to {last}", f"{'; '.join(parts)}."
    return [Event(row[-1].at, "run", title, text, place=float(last))]


def _events(view: HistoryView, record: Record) -> Iterator[Event]:
    match record:
        case ProductionRun():
            yield _ended(view, record)
        case BegunRun():
            yield from _begun(view, record)
        case CapacityWait():
            yield _waited(view, record)
        case IgnoredJob():
            text = f"{record.job} ran as {record.role}. {advice(record.code)}"
            yield _event(view, record, "A job did not count", text, tone="open")
        case FlagVersion():
            yield _flag_changed(view, record)
        case Review():
            yield from _reviewed(view, record)
        case RegistrationChange():
            yield _registered(view, record)
        case TrialStarted() | TrialDecided() | TrialFailed():
            yield _trial(view, record)
        case Unlocked():
            text = f"by {_person(record.by)}: {record.reason}"
            yield _event(view, record, "Lease released by hand", text, tone="open")
        case CanaryRound() | CanaryClosed():
            yield _canary(view, record)
        case ApprovalRequested() | ApprovalAnswer():
            yield _approval(view, record)
        case DamagedRecord(problem=problem):
            yield _event(view, record, "A record cannot be read", problem, tone="bad")


def _event(view: HistoryView, record: Record, title: str, text: str, **more: Any) -> Event:
    """A line of the record's own kind, placed by when it was written."""
    at = float(record.at)
    return Event(**{
        "at": at, "kind": record.kind, "title": title, "text": text, "place": view.place_at(at),
        **more,
    })  # fmt: skip


def _canary(view: HistoryView, record: CanaryRound | CanaryClosed) -> Event:
    if isinstance(record, CanaryRound):
        arms = ", ".join(run.arm for run in record.runs)
        runs = plural(len(record.runs), "run")
        text = f"The next {runs} of production train in turn: {arms}."
        return _event(view, record, "Canary runs begin", text)
    text = f"{CLOSED_WORDS.get(record.reason, record.reason)}."
    tone = {"complete": ""}.get(record.reason, "open")
    return _event(view, record, "Canary runs end", text, tone=tone)


def _approval(view: HistoryView, record: ApprovalRequested | ApprovalAnswer) -> Event:
    if isinstance(record, ApprovalRequested):
        text = f"“{record.candidate}” takes effect once a person approves it."
        return _event(view, record, "Waits for approval", text, tone="open")
    title = "Approved" if record.approved else "Not approved"
    text = f"by {_person(record.by)}: {record.reason or 'no reason recorded'}"
    return _event(view, record, title, text, mark=title.lower())


def _ended(view: HistoryView, run: ProductionRun) -> Event:
    place, fault, bad = view.places[run.job], view.fault_of(run), failed(run)
    metric, wall = metric_of(run), wall_seconds_of(run)
    scheduled = run.details.get("scheduled")
    due = datetime.fromisoformat(scheduled).timestamp() if scheduled else None
    parts = [
        run_reason(run.why),
        "" if metric is None else f"{view.metric} {fixed(metric)}",
        "" if wall is None else duration(wall),
        "" if run.usd is None else money(run.usd),
        f"with the injected fault ({fault})" if fault else "",
        "launched by the team" if run.launched_by == TEAM else "",
        "checks the alarm" if run.confirm else "",
        problem_of(run),
        "" if run.counts else "no evidence",
        "" if due is None else f"stands for {bare_minute(due)}",
    ]
    sound = run.finished and run.counts and not run.confirm and fault is None
    return _event(
        view, run, f"Run {place}: {run.arm}{' failed' if bad else ''}",
        "; ".join(part for part in parts if part) + ".", tone="bad" if bad else "",
        place=float(place), quiet=sound and run.why in UNEVENTFUL and run.launched_by != TEAM,
    )  # fmt: skip


def _begun(view: HistoryView, begun: BegunRun) -> Iterator[Event]:
    if begun.flag_problem in PROBLEMS:
        text = f"{begun.flag_told}; the run trains the baseline."
        yield _event(
            view, begun, "Flag not followed", text, kind="flag_problem", tone="bad",
            mark="flag not followed",
        )  # fmt: skip
    if begun.run not in view.history.ended_runs:
        text = f"run {begun.run} trains {begun.arm}: {run_reason(begun.why)}. "
        text += "Its end is not recorded yet."
        yield _event(view, begun, "A run is in progress", text, tone="open")


def _waited(view: HistoryView, wait: CapacityWait) -> Event:
    again = f"tries again in {duration(float(wait.wait_seconds))}"
    if wait.next_instance_type:
        again = f"tries {wait.next_instance_type} next"
    text = f"run {wait.run}, {wait.arm}: {wait.reason}; {again}"
    return _event(view, wait, "Waits for machines", text, tone="open")


def _registered(view: HistoryView, change: RegistrationChange) -> Event:
    fault, by = fault_in(change), f"by {_person(change.by)}" if change.by else ""
    if not change.active:
        text = f"by {_person(change.by)}; history, flag and evidence stay"
        return _event(view, change, "Retired from production", text, tone="off", mark="retired")
    if fault:
        text = (
            f"From now on every job with the compiler trains with {fault} (training.environment, "
            f"registered {by}). The baseline has no fault."
        )
        return _event(
            view, change, "Fault injected on purpose", text, kind="fault", tone="bad",
            mark="fault injected",
        )  # fmt: skip
    if fault == "":
        return _event(view, change, "Injected fault removed", by, kind="fault")
    names = ", ".join(str(one["field"]) for one in change.changes)
    schedule = (change.document or {}).get("schedule")
    when = f"schedule {schedule}" if schedule else "the team starts its runs"
    text = "; ".join(part for part in (by, f"changed: {names}" if names else when) if part)
    return _event(view, change, "Registered again" if names else "Registered", text)


def _trial(view: HistoryView, record: TrialStarted | TrialDecided | TrialFailed) -> Event:
    if isinstance(record, TrialStarted):
        return _event(view, record, "Trial begins", f"trial {record.trial}")
    if isinstance(record, TrialFailed):
        return _event(view, record, f"Trial {record.trial} failed", record.reason, tone="bad")
    verdict = verdict_label(record.verdict).text.lower()
    text = "; ".join(reason.rstrip(".") for reason in record.reasons)
    return _event(
        view, record, f"Trial {record.trial} decided: {verdict}", f"{text}.",
        tone="good" if record.verdict == Verdict.PROMOTE else "open", links=[record.decision_key],
    )  # fmt: skip


def _flag_changed(view: HistoryView, version: FlagVersion) -> Event:
    """One change of the flag: what, by whom, why, and which manual change it replaced."""
    action, flag, reason = version.action, version.flag, f"{version.reason.rstrip('.')}."
    title, tone, mark = FLAG_ACTIONS.get(action, (action.capitalize(), "", None))
    parts = [reason]
    if version.by_human:
        person = _person(version.by)
        title, tone, mark = BY_HAND.get(action, title), "open", f"{person}: {action}"
        parts = [f"by {person}: {reason}"]
    if version.overrode:
        replaced = version.overrode
        parts.append(
            f"This replaces the change by {_person(replaced.by)}: “{replaced.reason.rstrip('.')}”."
        )
    if action == "stale":
        parts.append("The flag stays on." if flag.enabled else "The flag is off.")
    links = [version.details.get(key) for key in ("decision_key", "evidence_key")]
    return _event(
        view, version, f"{title}: {flag.candidate}" if flag.candidate else title, " ".join(parts),
        tone=tone, mark=mark, links=[str(link) for link in links if link],
    )  # fmt: skip


def _reviewed(view: HistoryView, review: Review) -> Iterator[Event]:
    """New alarms and results, after the reviewed run; a change of the flag has its own line."""
    place, codes_before = view.place_of(review), view.codes_before(review)
    alarm, cleared = review.reason("alarm"), review.reason("alarm_cleared")
    if alarm and "alarm" not in codes_before:
        yield Event(float(review.at), "alarm", "Alarm", alarm, "bad", place, "alarm")
    elif review.message_kind == "failed":
        text = "; ".join(reason.message for reason in review.reasons)
        title = "Production cannot be judged"
        yield Event(float(review.at), "unproven", title, f"{text}.", "bad", place)
    # Once cleared, an alarm is counted in every later review.
    if cleared and ("alarm_cleared" not in codes_before or "alarm" in codes_before - review.codes):
        text = f"{cleared}; nothing was changed."
        title = "Alarm not confirmed"
        yield Event(float(review.at), "cleared", title, text, "good", place, "cleared")


def _person(by: str | None) -> str:
    return str(by).removeprefix(HUMAN)
