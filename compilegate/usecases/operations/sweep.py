"""Once a day: cleans up after ended executions, checks rows, records the day's metrics.

Safe to repeat. What the sweep did is in the ledger and published.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

from compilegate.domain import arithmetic, naming
from compilegate.domain.failures import IN_PROGRESS
from compilegate.domain.fleet.month import history_since, month_at
from compilegate.domain.fleet.row import Row
from compilegate.domain.optional import map_optional, without_none
from compilegate.domain.production import orphans
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.orphans import TaggedJob
from compilegate.domain.production.recorded_run import LOOK_BACK_SECONDS, RECENT_SECONDS, may_go_on
from compilegate.domain.production.savings import booked_at
from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.domain.records.ledger import Swept
from compilegate.domain.records.production import BegunRun, ProductionRun
from compilegate.domain.records.trials import TrialStarted
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services, Topic, TrainingLogs
from compilegate.report.notifications.production import swept as swept_message
from compilegate.usecases.fleet.project import SOUND, RowRepair, measure_repairs
from compilegate.usecases.metrics import measure
from compilegate.usecases.production.record_run import record_ended_execution
from compilegate.usecases.records import Trial, at_once, try_each, workload_names
from compilegate.usecases.started_jobs import (
    jobs_of_run,
    jobs_of_trial,
    recorded_jobs,
    requested_runs,
)
from compilegate.usecases.trial.abort_trial import abort_trial, clean_up_after

logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class Look:
    """One workload: executions that may have left jobs, runs and trials that have no end yet.

    ``day`` are the figures of the last 24 hours, None where the sweep may add to them. ``row`` is
    what was done with its row, ``failure`` why the ledger could not be read.
    """

    workload: str
    suspects: Sequence[Suspect] = ()
    runs: Sequence[BegunRun] = ()
    trials: Sequence[TrialStarted] = ()
    day: DayFigures | None = field(default_factory=DayFigures)
    row: str | None = None
    failure: Exception | None = None


def look_at(workload: str, lock: str | None, rows: RowRepair, services: Services) -> Look:
    """Read one workload's ledger, and fold its row anew where that lags behind it.

    ``lock`` is the execution that holds it. What fails is logged.
    """
    now = services.clock.now()
    try:
        history = services.ledger.recent(workload, _read_since(rows.row(workload), now))
        look = Look(
            workload,
            suspects=tuple(suspects(workload, history, services)),
            runs=[one for one in history.begun if one.run not in history.ended_runs],
            trials=history.open_trials,
            row=rows.check(workload, history, lock),
        )
        if lock is not None or look.suspects:  # each that has no end is one
            return replace(look, day=None)
        row = rows.row(workload) if look.row == SOUND else None
        return replace(look, day=_day(workload, lambda: history, row, services))
    except Exception as error:
        logger.exception("%s: its ledger cannot be read", workload)
        return Look(workload, failure=error)


def _read_since(row: Row | None, now: float) -> float:
    """From when on (epoch seconds) runs are read; without a row any may have left a job."""
    if row is None:
        return now - RUN_SECONDS
    began = map(naming.time_of, row.open_runs)
    return min([now - LOOK_BACK_SECONDS, *(at for at in began if at >= now - RUN_SECONDS)])


def day_by_ledger(workload: str, services: Services) -> DayFigures:
    """The figures of the last 24 hours by the ledger alone; none where it cannot be read."""
    since = services.clock.now() - LOOK_BACK_SECONDS
    return _day(workload, lambda: services.ledger.recent(workload, since), None, services)


def _day(
    workload: str, recent: Callable[[], WorkloadHistory], row: Row | None, services: Services
) -> DayFigures:
    """By what was read, and the row, where there is one; none where something cannot be read."""
    until = services.clock.now()
    since = until - DAY_SECONDS
    try:
        history = recent()
        for record in history.damaged:
            logger.error("%s: %s", workload, record.problem)
        # What a run saved shows in the runs of months.
        saved = any(run.arm != BASELINE and booked_at(run) >= since for run in history.runs)
        if saved or not _has_whole_day(history.runs, row, since):
            runs = services.ledger.runs(workload, history_since(month_at(since)))
            history = replace(history, runs=runs)
        return day_of(history, since=since, until=until)
    except Exception:
        logger.exception("%s: its day cannot be read", workload)
        return DayFigures()


def _has_whole_day(runs: Sequence[ProductionRun], row: Row | None, since: float) -> bool:
    """Whether all runs that ended since then are there: one may have begun long before."""
    if row is None:
        return False
    first = since // DAY_SECONDS
    ended = sum(run.ended_at >= first * DAY_SECONDS for run in runs)
    return ended == sum(one.runs for one in row.days if one.day >= first)


# Which training jobs ended executions may have left: of recent trials and runs, by their names.
#
# The clean-up after an execution stops its jobs. Left are those of an execution whose clean-up was
# lost, which the ledger shows as begun and not ended, and one that CreateTrainingJob started in the
# moment in which its execution was stopped, which the clean-up may not have seen.

# So long after a trial's end each sweep looks at what its clean-up may have missed.
ENDED_TRIAL_SECONDS = 7 * DAY_SECONDS


@dataclass(frozen=True)
class Suspect:
    """An execution that may have left jobs: of a trial, or of a production run."""

    workload: str
    execution: str
    of: str | BegunRun
    history: WorkloadHistory


def suspects(workload: str, history: WorkloadHistory, services: Services) -> Iterator[Suspect]:
    """The executions of a workload that may have left jobs; most of them still run."""
    now = services.clock.now()
    decided = {one.trial: one.at for one in history.decided}
    ends = {one.trial: one.at for one in history.failed} | decided
    for started in history.started:
        if ends.get(started.trial, now) < now - ENDED_TRIAL_SECONDS:
            continue
        if started.trial in decided and _all_recorded(Trial(workload, started.trial, ""), services):
            continue
        yield Suspect(workload, started.execution, started.trial, history)
    for begun in history.begun:
        runs = [run for run in history.runs if run.run == begun.run]
        if may_go_on(runs, since=now - RECENT_SECONDS):
            yield Suspect(workload, begun.execution, begun, history)


def _all_recorded(trial: Trial, services: Services) -> bool:
    """Whether the judge has seen a run of each job that was asked for, so that all have ended."""
    records = recorded_jobs(trial, services)
    jobs = map_optional(records, lambda one: one.with_runs) or ()
    recorded = {naming.job_run(trial.workload, trial.trial, job) for job in jobs}
    return recorded.issuperset(requested_runs(trial, services.store))


def left_by(suspect: Suspect, services: Services) -> list[TaggedJob]:
    """The jobs in progress of an execution that has ended."""
    if isinstance(suspect.of, BegunRun):
        jobs = jobs_of_run(suspect.workload, suspect.of, suspect.history, services)
    else:
        trial = Trial(suspect.workload, suspect.of, "")
        jobs = jobs_of_trial(trial, recorded_jobs(trial, services), services)
    return without_none(
        _tagged(name, described, services.jobs.tags(name))
        for name, described in jobs.items()
        if described["TrainingJobStatus"] == IN_PROGRESS
    )


def _tagged(name: str, described: Mapping[str, Any], tags: Mapping[str, str]) -> TaggedJob | None:
    """The job with its tags; None for one that has none of ours."""
    try:
        return TaggedJob(
            name=name,
            workload=tags[naming.TAG_WORKLOAD],
            execution=tags[naming.TAG_EXECUTION],
            stage=tags[naming.TAG_STAGE],
            created=int(described["CreationTime"].timestamp()),
            owner=tags.get("owner"),
        )
    except KeyError:
        return None


# The sweep over all workloads.

FIGURES = {
    "trial_usd": arithmetic.TRIAL_USD,
    "production_runs": arithmetic.PRODUCTION_RUNS,
    "failed_runs": arithmetic.FAILED_RUNS,
    "waited_runs": arithmetic.WAITED_RUNS,
    "production_usd": arithmetic.PRODUCTION_USD,
    "saved_usd": arithmetic.SAVED_USD,
    "flags_on": arithmetic.FLAGS_ON,
}
# Step Functions answers 15 a second, and 300 at once before.
DESCRIBED_AT_ONCE = 4
EndOf = Callable[[str], orphans.ExecutionEnd]


def daily(
    event: Mapping[str, Any],
    *,
    services: Services,
    topic: Topic,
    training_logs: TrainingLogs,
) -> dict[str, Any]:
    """Do all of it, the rest also where one fails; returns what was swept."""
    around = look_around(services)
    looks = around[1]
    try:
        repaired = measure_repairs((look.row for look in looks), services)
        return {**sweep(event, services=services, topic=topic, around=around), **repaired}
    finally:
        try:
            measure_day(services=services, looks=looks)
        finally:
            training_logs.limit_retention()


Around = tuple[Sequence[tuple[str, str]], Sequence[Look]]


def look_around(services: Services) -> Around:
    """Each locked workload with the execution that holds it, and a look at every ledger."""
    names = workload_names(services.store)
    locks = {lock.workload: lock.owner for lock in services.locks.locks_of(names)}
    rows = RowRepair(services)

    def look(workload: str) -> Look:
        return look_at(workload, locks.get(workload), rows, services)

    return sorted(locks.items()), at_once(look, names)


def sweep(
    event: Mapping[str, Any], *, services: Services, topic: Topic, around: Around | None = None
) -> dict[str, Any]:
    """Stop jobs and release locks that no running execution answers for, record lost runs.

    Trials that have begun and whose execution has ended badly get an end. ``around`` is that of
    ``look_around``.

    ``grace_seconds`` of the event shortens how long after an execution's end it is left alone.
    What fails does not keep back the rest; raises the last failure at the end, so that it sets off
    an alarm.
    """
    grace_seconds = float(event.get("grace_seconds", orphans.GRACE_SECONDS))
    now, end_of = services.clock.now(), cache(services.ends.end_of)
    locks, looks = around or look_around(services)
    suspected = [
        one
        for look in looks
        for one in look.suspects
        if orphans.of_deployment(one.execution, services.settings.stage)
    ]
    executions = [*(one.execution for one in suspected), *(execution for _, execution in locks)]
    ends = dict(at_once(lambda one: (one, end_of(one)), executions, most=DESCRIBED_AT_ONCE))
    over = [one for one in suspected if orphans.is_over(ends[one.execution], now, grace_seconds)]
    jobs, unread = _left(over, services)
    left = orphans.orphans_by_workload(jobs, locks, ends, now=now, grace_seconds=grace_seconds)
    unread += [(f"{look.workload} was not read", look.failure) for look in looks if look.failure]
    try:
        try_each(
            ((f"{workload} was not swept", workload) for workload in left),
            lambda workload: _clean_up(workload, left[workload], ends, services, topic),
        )
    finally:
        try:
            _end_lost_trials(looks, services, grace_seconds, end_of)
        finally:
            recorded = _record_lost_runs(looks, services, grace_seconds, end_of)
    try_each(unread, _fail)
    return {
        "stopped_jobs": sum(len(one.jobs) for one in left.values()),
        "released_locks": sum(len(one.locks) for one in left.values()),
        "recorded_runs": recorded,
    }


def _left(
    suspects: Iterable[Suspect], services: Services
) -> tuple[list[orphans.TaggedJob], list[tuple[str, Exception]]]:
    """The jobs that these executions left, and of which that could not be read, and why."""
    jobs: list[orphans.TaggedJob] = []
    unread: list[tuple[str, Exception]] = []
    for suspect in suspects:
        try:
            jobs += left_by(suspect, services)
        except Exception as error:  # noqa: BLE001 - raised once the others were swept
            unread.append((f"the jobs of {suspect.execution} were not read", error))
    return jobs, unread


def _fail(failure: Exception) -> None:
    raise failure


def _clean_up(
    workload: str,
    left: orphans.Orphans,
    ends: Mapping[str, orphans.ExecutionEnd],
    services: Services,
    topic: Topic,
) -> None:
    of_jobs = [job.execution for job in left.jobs]
    for execution in dict.fromkeys([*left.locks, *of_jobs]):
        clean_up_after(execution, ends[execution], services=services)
    for job in left.jobs:
        services.jobs.stop(job.name)
    for execution in left.locks:
        services.locks.release(workload, execution)
    swept = Swept(
        services.clock.now(),
        stopped_jobs=tuple(job.name for job in left.jobs),
        released_locks_of=left.locks,
    )
    services.ledger.append(workload, swept)
    message = swept_message(
        workload,
        stopped_jobs=swept.stopped_jobs,
        released_locks_of=swept.released_locks_of,
        owner=next((job.owner for job in left.jobs if job.owner), None),
        stage=services.settings.stage,
    )
    topic.publish(message)


def _record_lost_runs(
    looks: Iterable[Look], services: Services, grace_seconds: float, end_of: EndOf
) -> int:
    """Record production runs whose execution has ended without its record; returns of how many.

    The event of it was lost, or its job went on alone and has ended since. An execution that ended
    less than ``grace_seconds`` ago is left to its event.
    """
    now = services.clock.now()
    unended = (
        (f"{look.workload}: run {one.run} was not recorded", one)
        for look in looks
        for one in look.runs
    )

    def record(begun: BegunRun) -> bool:
        end = end_of(begun.execution)
        lost = end.status in orphans.ENDED_BADLY and end.at >= now - LOOK_BACK_SECONDS
        if not (lost and orphans.is_over(end, now, grace_seconds)):
            return False
        return bool(record_ended_execution({"detail": end.detail}, services=services)["recorded"])

    return try_each(unended, record)


def _end_lost_trials(
    looks: Iterable[Look], services: Services, grace_seconds: float, end_of: EndOf
) -> None:
    """End trials that have begun and have no end, though their execution has ended badly.

    The event of its end was lost, or the clean-up failed each time. No lock and no job need be
    left of it: a clean-up writes the start of a trial that was stopped before its first step, and
    may fail right after. Otherwise as for lost runs.
    """
    without_end = (
        (f"{look.workload}: trial {one.trial} was not ended", one)
        for look in looks
        for one in look.trials
    )

    def end_trial(started: TrialStarted) -> None:
        end = end_of(started.execution)
        lost = orphans.lacks_clean_up(started.execution, end, services.settings.stage)
        if lost and orphans.is_over(end, services.clock.now(), grace_seconds):
            abort_trial({"detail": end.detail}, services=services)

    try_each(without_end, end_trial)


def measure_day(*, services: Services, looks: Iterable[Look] = ()) -> DayFigures:
    """Write the figures of the last 24 hours as metrics; a workload that cannot be read is logged.

    ``looks`` are those of the sweep; what they do not say is read. Repeating it writes the same
    again, which the dashboard's daily maximum takes once.
    """
    seen = {look.workload: look.day for look in looks}

    def day(workload: str) -> DayFigures:
        return seen.get(workload) or day_by_ledger(workload, services)

    total = sum(at_once(day, workload_names(services.store)), DayFigures())
    values = asdict(total)
    figures = {metric: values[name] for name, metric in FIGURES.items()}
    measure(figures, "the figures of the last 24 hours", services)
    for verdict, number in sorted(total.decisions.items()):
        message = f"decisions of the last 24 hours: {verdict}"
        measure({arithmetic.DECISIONS: number}, message, services, **{arithmetic.VERDICT: verdict})
    return total
