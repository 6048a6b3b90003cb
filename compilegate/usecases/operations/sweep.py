"""Once a day: cleans up after ended executions, records the day's metrics, limits log retention.

Safe to repeat. What the sweep did is in the ledger and published.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.production.orphans import (
    GRACE_SECONDS,
    ExecutionEnd,
    Lease,
    Orphans,
    TaggedJob,
    of_deployment,
    orphans_by_workload,
)
from compilegate.domain.records.ledger import Swept
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
from compilegate.usecases.operations.lost_runs import record_lost_runs
from compilegate.usecases.operations.lost_trials import end_lost_trials
from compilegate.usecases.operations.measure_day import measure_day
from compilegate.usecases.registered import for_each_workload
from compilegate.usecases.trial.abort_trial import clean_up_after

logger = logging.getLogger("compilegate")


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
