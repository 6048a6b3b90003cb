"""What a workload's trial does, and what of a workload needs a person: from when on, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilegate.domain.fleet import row as rows
from compilegate.domain.fleet.month import STOPPED
from compilegate.domain.fleet.row import Need, Row
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.orphans import GRACE_SECONDS
from compilegate.domain.records.ledger import UnknownRecord

# An older baseline says little of what a run would take today.
BASELINE_SECONDS = 60 * DAY_SECONDS
# So many runs of the schedule may be missing, and none is missed before a day is over.
MISSED_RUNS, LEAST_MISSED_SECONDS = 2, DAY_SECONDS
WEEK_SECONDS = 7 * DAY_SECONDS


def phase_of(history: WorkloadHistory, locked: str | None) -> dict[str, Any]:
    """The fields of a row that say what its trial does; ``locked`` is the trial that holds it."""
    if history.open_approvals:
        asked = history.open_approvals[-1].asked
        return _phase(rows.APPROVAL, asked.at, asked.trial)
    if history.open_trials:
        begun = history.open_trials[-1]
        rounds = [one.at for one in history.open_rounds_of(begun.trial)]
        phase = rows.CANARY if rounds else rows.MEASURING
        return _phase(phase, [begun.at, *rounds][-1], begun.trial)
    decided = [one.at for one in history.decided if one.trial == locked]
    return _phase(rows.APPLYING, decided[-1], locked) if decided else {}


def _phase(phase: str, since: int, trial: str | None) -> dict[str, Any]:
    return {"phase": phase, "trial": trial, "phase_since": since}


def needs_of(row: Row, history: WorkloadHistory, locked: str | None) -> tuple[Need, ...]:
    """What needs a person, the most urgent first; of a retired workload no more than must end."""
    needs = [*_needs_of_ledger(history, locked)]
    if row.active or not row.registered:
        needs += [*_needs_of_flag(row), *_failed(row, history)]
    return tuple(sorted(needs, key=urgency))


def urgency(need: Need) -> int:
    """By which needs are ordered, the most urgent first."""
    return rows.NEEDS.index(need.code) if need.code in rows.NEEDS else len(rows.NEEDS)


def _needs_of_ledger(history: WorkloadHistory, locked: str | None) -> Iterator[Need]:
    waiting = [one.asked.at for one in history.open_approvals]
    if waiting:
        yield Need(rows.APPROVE, waiting[-1])
    unread = [record.at for record in history.records if isinstance(record, UnknownRecord)]
    if unread:
        yield Need(rows.UNREADABLE, min(unread))
    # An answer is followed by the last steps of the execution, as a decision is.
    answered = [one.answer.at for one in history.approvals if one.trial == locked and one.answer]
    ended = [at for at, trial in _ends(history) if trial == locked]
    if ended and not waiting:
        yield Need(rows.LOCK_STAYS, max(ended + answered) + GRACE_SECONDS)


def _ends(history: WorkloadHistory) -> list[tuple[int, str]]:
    """When each trial was decided or failed."""
    decided = [(one.at, one.trial) for one in history.decided]
    return decided + [(one.at, one.trial) for one in history.failed]


def _needs_of_flag(row: Row) -> Iterator[Need]:
    flag = row.known_flag
    if flag.since is None:
        return
    if flag.state in (rows.REVERTED, rows.STALE):
        yield Need(flag.state, flag.since)
    if not flag.enabled:
        return
    if row.slower_at is not None:
        yield Need(rows.SLOWER_NOW, row.slower_at)
    baseline_at = flag.since if row.baseline_at is None else row.baseline_at
    yield Need(rows.NO_BASELINE, max(flag.since, baseline_at + BASELINE_SECONDS))
    if row.runs_per_week is not None:
        missed = round(MISSED_RUNS * WEEK_SECONDS / row.runs_per_week)
        followed_at = flag.since if flag.followed_at is None else flag.followed_at
        yield Need(rows.NOT_READ, followed_at + max(missed, LEAST_MISSED_SECONDS))


def _failed(row: Row, history: WorkloadHistory) -> Iterator[Need]:
    """The last run, or the last trial, which no person has stopped and none has followed."""
    failed = [row.last_run.at] if row.last_run is not None and not row.last_run.ok else []
    decided = [one.trial for one in history.decided]
    failures = [one for one in history.failed if one.error not in STOPPED]
    if row.phase == rows.NO_TRIAL:
        last = max(_ends(history), default=None)
        failed += [
            one.at for one in failures if (one.at, one.trial) == last and one.trial not in decided
        ]
    if failed:
        yield Need(rows.FAILED, max(failed))
