"""A workload's row, folded from its ledger: all of it, or what is new since the row before.

Entries may come in any order and twice. A fold from a row reads the runs of the months that were
open then, and those of so long before that none of them is missed. What it takes from the row is
newest moments and sums over closed months alone, so that both folds give the same row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import takewhile
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.flag import OFF
from compilegate.domain.flag_change import Versions
from compilegate.domain.fleet import row as rows
from compilegate.domain.fleet.month import (
    STOPPED,
    Amount,
    Estimate,
    Month,
    history_since,
    month_at,
    open_months,
    registered,
    spent_on_trials,
    window_of,
)
from compilegate.domain.followers import PERMANENT
from compilegate.domain.optional import largest, map_optional, without_none
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.orphans import GRACE_SECONDS
from compilegate.domain.production.recorded_run import runs_in_progress
from compilegate.domain.production.summaries import TimeWindow
from compilegate.domain.records.ledger import Record, UnknownRecord
from compilegate.domain.records.production import TRAIN, ProductionRun
from compilegate.domain.workload.model import BASELINE, Workload

# Sections of the ledger that a row is made from: those of which a fold may read a part, and those
# of which it reads all.
OF_RUNS = (ledger_keys.RUN_ENTRIES, ledger_keys.REVIEW_ENTRIES)
COUNTED = (
    ledger_keys.APPROVAL_ENTRIES, ledger_keys.CANARY_ENTRIES, ledger_keys.FLAG_ENTRIES,
    ledger_keys.REGISTERED_ENTRIES, ledger_keys.TRIAL_ENTRIES,
)  # fmt: skip
LOCK = "lock"
# Trials whose spreads a row has, the latest.
TRIALS_KEPT = 3
ALWAYS, NEVER = TimeWindow(-math.inf, math.inf), TimeWindow(0, 0)


def base_of(
    workload: str, previous: rows.Row | None, changed: Iterable[str] = (), *, now: float
) -> rows.Row:
    """The row that a fold goes on from; an empty one where the ledger has to be read as a whole.

    That is where there is none, where an older release has folded it otherwise, where entries
    could not be read (they may have been restored), where it was read after epoch second ``now``
    (a clock was ahead), and where an entry has ``changed``, by its sort key, that is older than
    what would be read.
    """
    if (
        previous is None
        or previous.fold < rows.FOLD
        or previous.unread > 0
        or previous.read_at > now
    ):
        return rows.Row(workload)
    since = read_since(previous)
    first = "" if since == -math.inf else naming.trial_id(round(1000 * since))
    runs = [key.split("#")[1] for key in changed if key.startswith(OF_RUNS)]
    return rows.Row(workload) if any(run < first for run in runs) else previous


def read_since(base: rows.Row) -> float:
    """From which start on (epoch seconds) a fold from ``base`` reads runs."""
    if not base.closed.through:
        return -math.inf
    return history_since(month_at(window_of(base.closed.through).until))


def row_of(
    base: rows.Row,
    history: WorkloadHistory,
    months: Sequence[Month],
    *,
    now: int,
    job: Workload | None = None,
    lock: str | None = None,
) -> rows.Row:
    """The row of a ledger as it was read at epoch second ``now``.

    ``history`` has the runs from ``read_since`` on, and all else; ``months`` are those after the
    base's closed ones. ``job`` is what is registered, None where nothing is or it cannot be read;
    ``lock`` is the execution that holds the workload.
    """
    locked = _trial_of(history, lock)
    closed, saved = _saved(base.closed, months, now)
    runs = history.runs
    ended = without_none([
        base.last_run, *(rows.LastRun(int(run.ended_at), run.arm, run.finished) for run in runs)
    ])  # fmt: skip
    baseline = (
        int(run.ended_at) for run in runs if run.arm == BASELINE and run.finished and run.counts
    )
    row = rows.Row(
        workload=base.workload,
        owner=registered(history, "owner"),
        registered=bool(history.registrations),
        active=bool(history.registrations) and not history.is_retired,
        **_job(job),
        **phase_of(history, locked),
        flag=_flag(history, base.known_flag),
        last_run=max(ended, key=lambda run: (run.at, run.arm, run.ok), default=None),
        days=_days(history, base),
        saved=saved,
        baseline_at=largest([base.baseline_at, *baseline]),
        trials=Amount.total(list(spent_on_trials(history, ALWAYS, math.inf))),
        open_runs=runs_in_progress(history, base.open_runs),
        unread=sum(isinstance(record, UnknownRecord) for record in history.records),
        entries=_entries(history.records),
        upto=_upto(history.records, base.upto, locked),
        closed=closed,
        spreads=tuple(without_none(one.spreads for one in history.decided)[-TRIALS_KEPT:]),
        read_at=now,
    )
    row = replace(
        row,
        stale=_stale(history, row.known_flag, base),
        slower_at=_slower_at(history, row.known_flag, base),
    )
    return replace(row, needs=needs_of(row, history, locked))


def unreadable(row: rows.Row, now: int) -> rows.Row:
    """The row where the ledger cannot be read at all: as it was, and that it needs a person."""
    others = [need for need in row.needs if need.code != rows.UNREADABLE]
    since = min([now, *(need.since for need in row.needs if need not in others)])
    needs = sorted([*others, rows.Need(rows.UNREADABLE, since)], key=urgency)
    return replace(row, unread=max(row.unread, 1), needs=tuple(needs), read_at=now)


def lags(
    row: rows.Row, recent: WorkloadHistory, lock: str | None, young: TimeWindow = NEVER
) -> bool:
    """Whether a row does not cover what was read of its ledger, which may be a part of it.

    What was written in ``young`` it need not cover yet, nor the lock where that may have changed.
    """
    records = [one for one in recent.records if not young.holds(one.at)]
    new = [one.key for one in recent.records if young.holds(one.at)]
    may_have_changed = any(not key.startswith(ledger_keys.RUN_ENTRIES) for key in new)
    locked = row.upto.get(LOCK) if may_have_changed else _trial_of(recent, lock)
    unread = any(isinstance(record, UnknownRecord) for record in records)
    entries = _entries(records)
    return (
        row.fold < rows.FOLD
        or (unread and row.unread == 0)
        or dict(row.upto) != _upto(records, row.upto, locked)
        or any(row.entries.get(section, 0) < entries[section] for section in entries)
        or _has_more_runs(records, row.days)
    )


def _has_more_runs(records: Iterable[Record], days: Sequence[rows.DayOfRuns]) -> bool:
    """Whether more runs ended in the week of the last one than were counted."""
    counted = {one.day: one.runs for one in days}
    first = max(counted, default=0) - rows.WEEK_DAYS + 1
    runs = Counter(_day(one) for one in records if isinstance(one, ProductionRun))
    return any(day >= first and number > counted.get(day, 0) for day, number in runs.items())


def _trial_of(history: WorkloadHistory, execution: str | None) -> str | None:
    """The trial of an execution, which is named after it unless a person started it."""
    if execution is None:
        return None
    named = (one.trial for one in history.started if one.execution == execution)
    return next(named, naming.trial_of(execution)[1])


def _entries(records: Iterable[Record]) -> Counter[str]:
    keys = (record.key for record in records)
    return Counter(key.partition("#")[0] for key in keys if key.startswith(COUNTED))


def _upto(
    records: Iterable[Record], before: Mapping[str, str], locked: str | None
) -> dict[str, str]:
    """The newest sort key of runs and of reviews, and the trial that holds the workload."""
    upto = {section: key for section, key in before.items() if section != LOCK}
    for key in (record.key for record in records):
        if key.startswith(OF_RUNS):
            section = key.partition("#")[0]
            upto[section] = max(key, upto.get(section, ""))
    if locked:
        upto[LOCK] = locked
    return upto


def _job(job: Workload | None) -> dict[str, Any]:
    if job is None:
        return {}
    return {
        "instance": job.training.instance_type,
        "instances": job.training.instance_count,
        "image": f"{job.framework.name} {job.framework.version}",
        "family": job.model.family,
        "runs_per_week": job.schedule.runs_per_week,
    }


def _flag(history: WorkloadHistory, before: rows.RowFlag) -> rows.RowFlag | None:
    try:
        versions = history.flags
    except UnreadableRecordError:
        return None
    if not versions:
        return rows.RowFlag(OFF.state, OFF.enabled)
    flag, since = versions[-1].flag, _in_state_since(versions)
    followed = [
        int(run.ended_at)
        for run in history.runs
        if run.ended_at >= since and (run.arm == flag.candidate or run.launched_by == TRAIN)
    ]
    earlier = before.followed_at if before.since == since else None
    return rows.RowFlag(
        flag.state,
        flag.enabled,
        flag.candidate,
        since=since,
        version=versions[-1].version,
        followed_at=largest([earlier, *followed]),
    )


def _in_state_since(versions: Versions) -> int:
    now = versions[-1].flag
    of_this_state = takewhile(
        lambda one: (one.flag.state, one.flag.candidate) == (now.state, now.candidate),
        reversed(versions),
    )
    return [one.at for one in of_this_state][-1]


def _stale(history: WorkloadHistory, flag: rows.RowFlag, base: rows.Row) -> tuple[str, ...]:
    """What differs, by the review that made the flag stale."""
    if flag.state != rows.STALE:
        return ()
    review = history.review_of(str(history.flags[-1].details.get("run")))
    if review is not None:
        return review.differs
    return base.stale if base.known_flag.since == flag.since else ()


def _slower_at(history: WorkloadHistory, flag: rows.RowFlag, base: rows.Row) -> int | None:
    """Since when the speed-up is lost, by the latest review of a permanent promotion."""
    if flag.since is None or flag.state != PERMANENT:
        return None
    reviews = [one for one in history.reviews if one.at >= flag.since]
    if reviews:
        return map_optional(reviews[-1].speed, lambda last: last.lost_at)
    return base.slower_at if base.known_flag.since == flag.since else None


def _days(history: WorkloadHistory, base: rows.Row) -> tuple[rows.DayOfRuns, ...]:
    """The last run's day and those of the week before it."""
    # All runs of a day are read where those begun so long before it are.
    first = (read_since(base) + RUN_SECONDS) / DAY_SECONDS
    runs = Counter(map(_day, history.runs))
    failed = Counter(_day(run) for run in history.runs if not run.finished)
    days = {one.day: one for one in base.days if one.day < first}
    days |= {day: rows.DayOfRuns(day, runs[day], failed[day]) for day in runs if day >= first}
    return tuple(days[day] for day in sorted(days) if day > max(days) - rows.WEEK_DAYS)


def _day(run: ProductionRun) -> int:
    return int(run.ended_at // DAY_SECONDS)


def _saved(before: rows.Closed, months: Sequence[Month], now: int) -> tuple[rows.Closed, Estimate]:
    """What the closed months have saved, and what all have."""
    through = month_at(window_of(open_months(now)[0]).since - 1)
    ended = [one for one in months if one.closes_at <= now]
    closed = _with(before, ended, max(before.through, through))
    opened = [one for one in months if one not in ended]
    return closed, _with(closed, opened, "").saved


def _with(closed: rows.Closed, months: Sequence[Month], through: str) -> rows.Closed:
    """With further months; those of one workload share baseline runs, so that errors add up."""
    parts = [closed.saved, *(month.figures.saved for month in months)]
    sums = (sum(getattr(part, one.name) for part in parts) for one in fields(Estimate))
    return rows.Closed(through, Estimate(*sums))


# What a workload's trial does, and what of a workload needs a person: from when on, and why.

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


def needs_of(row: rows.Row, history: WorkloadHistory, locked: str | None) -> tuple[rows.Need, ...]:
    """What needs a person, the most urgent first; of a retired workload no more than must end."""
    needs = [*_needs_of_ledger(history, locked)]
    if row.active or not row.registered:
        needs += [*_needs_of_flag(row), *_failed(row, history)]
    return tuple(sorted(needs, key=urgency))


def urgency(need: rows.Need) -> int:
    """By which needs are ordered, the most urgent first."""
    return rows.NEEDS.index(need.code) if need.code in rows.NEEDS else len(rows.NEEDS)


def _needs_of_ledger(history: WorkloadHistory, locked: str | None) -> Iterator[rows.Need]:
    waiting = [one.asked.at for one in history.open_approvals]
    if waiting:
        yield rows.Need(rows.APPROVE, waiting[-1])
    unread = [record.at for record in history.records if isinstance(record, UnknownRecord)]
    if unread:
        yield rows.Need(rows.UNREADABLE, min(unread))
    # An answer is followed by the last steps of the execution, as a decision is.
    answered = [one.answer.at for one in history.approvals if one.trial == locked and one.answer]
    ended = [at for at, trial in _ends(history) if trial == locked]
    if ended and not waiting:
        yield rows.Need(rows.LOCK_STAYS, max(ended + answered) + GRACE_SECONDS)


def _ends(history: WorkloadHistory) -> list[tuple[int, str]]:
    """When each trial was decided or failed."""
    decided = [(one.at, one.trial) for one in history.decided]
    return decided + [(one.at, one.trial) for one in history.failed]


def _needs_of_flag(row: rows.Row) -> Iterator[rows.Need]:
    flag = row.known_flag
    if flag.since is None:
        return
    if flag.state in (rows.REVERTED, rows.STALE):
        yield rows.Need(flag.state, flag.since)
    if not flag.enabled:
        return
    if row.slower_at is not None:
        yield rows.Need(rows.SLOWER_NOW, row.slower_at)
    baseline_at = flag.since if row.baseline_at is None else row.baseline_at
    yield rows.Need(rows.NO_BASELINE, max(flag.since, baseline_at + BASELINE_SECONDS))
    if row.runs_per_week is not None:
        missed = round(MISSED_RUNS * WEEK_SECONDS / row.runs_per_week)
        followed_at = max(flag.since, flag.followed_at or 0)
        yield rows.Need(rows.NOT_READ, followed_at + max(missed, LEAST_MISSED_SECONDS))


def _failed(row: rows.Row, history: WorkloadHistory) -> Iterator[rows.Need]:
    """The last run, or the last trial, which no person has stopped and none has followed."""
    failed = [last.at for last in without_none([row.last_run]) if not last.ok]
    decided = [one.trial for one in history.decided]
    failures = [one for one in history.failed if one.error not in STOPPED]
    if row.phase == rows.NO_TRIAL:
        last = max(_ends(history), default=None)
        failed += [
            one.at for one in failures if (one.at, one.trial) == last and one.trial not in decided
        ]
    if failed:
        yield rows.Need(rows.FAILED, max(failed))
