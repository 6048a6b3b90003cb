"""Once a day: cleans up after ended executions, records the day's metrics, limits log retention.

Safe to repeat. What the sweep did is in the ledger and published.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from compilegate.domain import arithmetic, ledger_keys, naming
from compilegate.domain.production.orphans import (
    ENDED_BADLY,
    GRACE_SECONDS,
    ExecutionEnd,
    Lease,
    Orphans,
    TaggedJob,
    is_over,
    lacks_clean_up,
    of_deployment,
    orphans_by_workload,
)
from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.domain.records.ledger import Swept
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.records.trials import TrialStarted
from compilegate.ports import (
    ExecutionEnds,
    Locks,
    ObjectStore,
    Services,
    Topic,
    TrainingJobs,
    TrainingLogs,
)
from compilegate.report.notifications.production import swept as swept_message
from compilegate.usecases.metrics import measure
from compilegate.usecases.production.record_run import record_ended_execution
from compilegate.usecases.registered import for_each_workload, try_each
from compilegate.usecases.trial.abort_trial import abort_trial, clean_up_after

# Records production runs whose execution has ended without its record: the event of it was lost,
# or its job went on alone and has ended since.

# As long as the queue of dead letters keeps the event (stacks/stack.py).
LOOK_BACK_SECONDS = 14 * 24 * 3600


def record_lost_runs(services: Services, *, grace_seconds: float) -> int:
    """Record them as the event would have; returns how many executions were made up for.

    An execution that ended less than ``grace_seconds`` ago is left to its event. Raises the last
    failure once all were tried.
    """
    by_workload = for_each_workload(lambda name: _unended(name, services), services.store)
    lost = (
        (f"{workload}: run {begun.run} was not recorded", begun)
        for workload, unended in by_workload
        for begun in unended
    )
    return try_each(lost, lambda begun: _record(begun, services, grace_seconds))


def _unended(workload: str, services: Services) -> tuple[str, list[BegunRun]]:
    past = services.ledger.history(workload, ledger_keys.RUN_ENTRIES)
    since = services.clock.now() - LOOK_BACK_SECONDS
    return workload, [
        one for one in past.begun if one.run not in past.ended_runs and one.at > since
    ]


def _record(begun: BegunRun, services: Services, grace_seconds: float) -> bool:
    end = services.ends.end_of(begun.execution)
    if end is None or end.status not in ENDED_BADLY or end.at is None:
        return False
    if not is_over(end, services.clock.now(), grace_seconds):
        return False
    return bool(record_ended_execution({"detail": end.detail}, services=services)["recorded"])


# Ends trials that have begun and have no end, though their execution has ended badly.
#
# The event of its end was lost, or the clean-up failed each time. No lease and no job need be left
# of it: a clean-up writes the start of a trial that was stopped before its first step, and may fail
# right after.


def end_lost_trials(services: Services, *, grace_seconds: float) -> int:
    """Clean up after them as the event would have; returns after how many.

    An execution that ended less than ``grace_seconds`` ago is left to its event. Raises the last
    failure once all were tried.
    """
    by_workload = for_each_workload(lambda name: _without_end(name, services), services.store)
    lost = (
        (f"{workload}: trial {started.trial} was not ended", started)
        for workload, trials in by_workload
        for started in trials
    )
    return try_each(lost, lambda started: _end(started, services, grace_seconds))


def _without_end(workload: str, services: Services) -> tuple[str, list[TrialStarted]]:
    past = services.ledger.history(workload, ledger_keys.TRIAL_ENTRIES)
    return workload, [one for one in past.started if one.trial not in past.ended_trials]


def _end(started: TrialStarted, services: Services, grace_seconds: float) -> bool:
    end = services.ends.end_of(started.execution)
    if end is None or not lacks_clean_up(started.execution, end, services.settings.stage):
        return False
    if not is_over(end, services.clock.now(), grace_seconds):
        return False
    abort_trial({"detail": end.detail}, services=services)
    return True


# The deployment's figures of the last 24 hours, as CloudWatch metrics.

DAY_SECONDS = 24 * 3600
FIGURES = {
    "trial_usd": arithmetic.TRIAL_USD,
    "production_runs": arithmetic.PRODUCTION_RUNS,
    "failed_runs": arithmetic.FAILED_RUNS,
    "waited_runs": arithmetic.WAITED_RUNS,
    "production_usd": arithmetic.PRODUCTION_USD,
    "saved_usd": arithmetic.SAVED_USD,
    "flags_on": arithmetic.FLAGS_ON,
}
logger = logging.getLogger("compilegate")


def measure_day(*, services: Services) -> DayFigures:
    """Write the figures of the last 24 hours as metrics; a workload that cannot be read is logged.

    Repeating it writes the same again, which the dashboard's daily maximum takes once.
    """
    days = for_each_workload(lambda name: _day(name, services), services.store)
    total = sum(days, DayFigures())
    values = asdict(total)
    figures = {metric: values[name] for name, metric in FIGURES.items()}
    measure(figures, "the figures of the last 24 hours", services)
    for verdict, number in sorted(total.decisions.items()):
        message = f"decisions of the last 24 hours: {verdict}"
        measure({arithmetic.DECISIONS: number}, message, services, **{arithmetic.VERDICT: verdict})
    return total


def _day(workload: str, services: Services) -> DayFigures:
    now = services.clock.now()
    try:
        past = services.ledger.history(workload)
        for record in past.damaged:
            logger.error("%s: %s", workload, record.problem)
        return day_of(past, since=now - DAY_SECONDS, until=now)
    except Exception:
        logger.exception("%s: its day cannot be read", workload)
        return DayFigures()


def daily(
    event: Mapping[str, Any],
    *,
    services: Services,
    topic: Topic,
    training_logs: TrainingLogs,
) -> dict[str, Any]:
    """Do all three, the others also where one fails; returns what was swept."""
    try:
        return sweep(event, services=services, topic=topic)
    finally:
        try:
            measure_day(services=services)
        finally:
            training_logs.limit_retention()


def sweep(event: Mapping[str, Any], *, services: Services, topic: Topic) -> dict[str, Any]:
    """Stop jobs and release leases that no running execution answers for, record lost runs.

    Trials that have begun and whose execution has ended badly get an end.

    ``grace_seconds`` of the event shortens how long after an execution's end it is left alone.
    One workload that fails does not keep back the others; raises the last failure at the end, so
    that it sets off an alarm.
    """
    grace_seconds = float(event.get("grace_seconds", GRACE_SECONDS))
    by_workload, ended = _read(services, grace_seconds)
    stopped, released, failure = 0, 0, None
    for workload, orphans in by_workload.items():
        try:
            _clean_up(workload, orphans, ended, services=services)
            message = swept_message(
                workload,
                stopped_jobs=orphans.stopped_jobs,
                released_leases_of=orphans.released_leases_of,
                owner=orphans.owner,
                stage=services.settings.stage,
            )
            topic.publish(message)
            stopped += len(orphans.jobs)
            released += len(orphans.leases)
        except Exception as error:
            logger.exception("%s was not swept", workload)
            failure = error
    try:
        end_lost_trials(services, grace_seconds=grace_seconds)
    except Exception as error:
        logger.exception("trials without an end are left")
        failure = error
    recorded = record_lost_runs(services, grace_seconds=grace_seconds)
    if failure is not None:
        raise failure
    return {"stopped_jobs": stopped, "released_leases": released, "recorded_runs": recorded}


def _read(
    services: Services, grace_seconds: float
) -> tuple[dict[str, Orphans], dict[str, ExecutionEnd]]:
    """Orphans by workload, and how the executions ended that left them."""
    jobs, leases = _own_jobs(services), _leases(services.locks, services.store)
    executions = [*(job.execution for job in jobs), *(lease.execution for lease in leases)]
    ended = _ended(executions, services.ends)
    now = services.clock.now()
    left = orphans_by_workload(jobs, leases, ended, now=now, grace_seconds=grace_seconds)
    return left, ended


def _own_jobs(services: Services) -> list[TaggedJob]:
    """Jobs in progress that this deployment's executions have started."""
    jobs, stage = services.jobs, services.settings.stage
    tagged = [_tagged(name, jobs) for name in jobs.active(f"{naming.JOB_PREFIX}-")]
    return [job for job in tagged if job is not None and of_deployment(job.execution, stage)]


def _tagged(name: str, jobs: TrainingJobs) -> TaggedJob | None:
    """The job with its tags; None for one that has none of ours, or is gone."""
    tags, described = jobs.tags(name), jobs.describe(name)
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


def _leases(locks: Locks, store: ObjectStore) -> list[Lease]:
    def lease_of(workload: str) -> Lease | None:
        owner = locks.holder(workload)
        return Lease(workload, owner) if owner else None

    return [lease for lease in for_each_workload(lease_of, store) if lease is not None]


def _ended(executions: Iterable[str], ends: ExecutionEnds) -> dict[str, ExecutionEnd]:
    """Those that have ended, and how."""
    by_execution = {execution: ends.end_of(execution) for execution in dict.fromkeys(executions)}
    return {execution: end for execution, end in by_execution.items() if end is not None}


def _clean_up(
    workload: str, orphans: Orphans, ends: Mapping[str, ExecutionEnd], *, services: Services
) -> None:
    for execution in orphans.executions:
        clean_up_after(execution, ends[execution], services=services)
    for job in orphans.jobs:
        services.jobs.stop(job.name)
    for lease in orphans.leases:
        services.locks.release(workload, lease.execution)
    swept = Swept(services.clock.now(), orphans.stopped_jobs, orphans.released_leases_of)
    services.ledger.append(workload, swept)
