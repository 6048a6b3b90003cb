"""Once a day: cleans up after ended executions, checks rows, records the day's metrics.

Safe to repeat. What the sweep did is in the ledger and published.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from compilegate.domain import arithmetic
from compilegate.domain.production import orphans
from compilegate.domain.production.recorded_run import LOOK_BACK_SECONDS
from compilegate.domain.production.summaries import DayFigures
from compilegate.domain.records.ledger import Swept
from compilegate.domain.records.production import BegunRun
from compilegate.domain.records.trials import TrialStarted
from compilegate.ports import Services, Topic, TrainingLogs
from compilegate.report.notifications.production import swept as swept_message
from compilegate.usecases.fleet.repair import RowRepair, measure_repairs
from compilegate.usecases.metrics import measure
from compilegate.usecases.operations.look import Look, Suspect, day_by_ledger, left_by, look_at
from compilegate.usecases.production.record_run import record_ended_execution
from compilegate.usecases.records import at_once, try_each, workload_names
from compilegate.usecases.trial.abort_trial import abort_trial, clean_up_after

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
logger = logging.getLogger("compilegate")


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
        repaired = measure_repairs((look.row for look in looks if look.row), services)
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
    ended = at_once(end_of, executions, most=DESCRIBED_AT_ONCE)
    ends = dict(zip(executions, ended, strict=True))
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


def _fail(failure: Exception) -> bool:
    raise failure


def _clean_up(
    workload: str,
    left: orphans.Orphans,
    ends: Mapping[str, orphans.ExecutionEnd],
    services: Services,
    topic: Topic,
) -> bool:
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
    return True


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
) -> int:
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

    def end_trial(started: TrialStarted) -> bool:
        end = end_of(started.execution)
        lost = orphans.lacks_clean_up(started.execution, end, services.settings.stage)
        if lost and orphans.is_over(end, services.clock.now(), grace_seconds):
            abort_trial({"detail": end.detail}, services=services)
            return True
        return False

    return try_each(without_end, end_trial)


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
