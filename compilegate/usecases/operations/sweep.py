"""Once a day: cleans up after ended executions, records the day's metrics, limits log retention.

Safe to repeat. What the sweep did is in the ledger and published.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.production.orphans import (
    ENDED_BADLY,
    GRACE_SECONDS,
    ExecutionEnd,
    Lease,
    TaggedJob,
    of_deployment,
    orphaned_jobs,
    orphaned_leases,
)
from compilegate.domain.records.ledger import Swept
from compilegate.ports import ExecutionEnds, Services, Topic, TrainingLogs
from compilegate.report.notifications.production import swept as swept_message
from compilegate.usecases.operations.measure_day import measure_day
from compilegate.usecases.registered import for_each_workload
from compilegate.usecases.trial.abort_trial import abort_trial

logger = logging.getLogger("compilegate")


def daily(
    event: Mapping[str, Any],
    *,
    services: Services,
    ends: ExecutionEnds,
    topic: Topic,
    training_logs: TrainingLogs,
) -> dict[str, Any]:
    """Do all three, the others also where one fails; returns what was swept."""
    try:
        return sweep(event, services=services, ends=ends, topic=topic)
    finally:
        try:
            measure_day(services=services)
        finally:
            training_logs.limit_retention()


@dataclass
class _Orphans:
    """What ended executions left of one workload."""

    jobs: list[TaggedJob] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)

    @property
    def executions(self) -> list[str]:
        """The executions that left it, each once."""
        return list(
            dict.fromkeys([*self.released_leases_of, *(job.execution for job in self.jobs)])
        )

    @property
    def owner(self) -> str | None:
        """The workload's owner, where a job names one."""
        return next((job.owner for job in self.jobs if job.owner), None)

    @property
    def stopped_jobs(self) -> tuple[str, ...]:
        """Names of the jobs."""
        return tuple(job.name for job in self.jobs)

    @property
    def released_leases_of(self) -> tuple[str, ...]:
        """Executions that held the leases."""
        return tuple(lease.execution for lease in self.leases)


def sweep(
    event: Mapping[str, Any], *, services: Services, ends: ExecutionEnds, topic: Topic
) -> dict[str, Any]:
    """Stop jobs and release leases that no running execution answers for.

    ``grace_seconds`` of the event shortens how long after an execution's end it is left alone.
    One workload that fails does not keep back the others; raises the last failure at the end, so
    that it sets off an alarm.
    """
    by_workload, ended = _read(services, ends, float(event.get("grace_seconds", GRACE_SECONDS)))
    stopped, released, failure = 0, 0, None
    for workload, orphans in sorted(by_workload.items()):
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
    if failure is not None:
        raise failure
    return {"stopped_jobs": stopped, "released_leases": released}


def _read(
    services: Services, ends: ExecutionEnds, grace_seconds: float
) -> tuple[dict[str, _Orphans], dict[str, ExecutionEnd]]:
    """Orphans by workload, and how the executions ended that left them."""
    jobs, leases = _own_jobs(services), _leases(services)
    executions = [*(job.execution for job in jobs), *(lease.execution for lease in leases)]
    ended = _ended(executions, ends)
    now = services.clock.now()
    by_workload: dict[str, _Orphans] = defaultdict(_Orphans)
    for job in orphaned_jobs(jobs, ended, now=now, grace_seconds=grace_seconds):
        by_workload[job.workload].jobs.append(job)
    for lease in orphaned_leases(leases, ended, now=now, grace_seconds=grace_seconds):
        by_workload[lease.workload].leases.append(lease)
    return by_workload, ended


def _own_jobs(services: Services) -> list[TaggedJob]:
    """Jobs in progress that this deployment's executions have started."""
    names = services.jobs.active(f"{naming.JOB_PREFIX}-")
    jobs = [_tagged(name, services) for name in names]
    stage = services.settings.stage
    return [job for job in jobs if job is not None and of_deployment(job.execution, stage)]


def _tagged(name: str, services: Services) -> TaggedJob | None:
    """The job with its tags; None for one that has none of ours."""
    try:
        tags = services.jobs.tags(name)
        created = int(services.jobs.describe(name)["CreationTime"].timestamp())
        return TaggedJob(
            name=name,
            workload=tags[naming.TAG_WORKLOAD],
            execution=tags[naming.TAG_EXECUTION],
            stage=tags[naming.TAG_STAGE],
            created=created,
            owner=tags.get("owner"),
        )
    except (KeyError, NotFoundError):
        return None


def _leases(services: Services) -> list[Lease]:
    def lease_of(workload: str) -> Lease | None:
        owner = services.locks.holder(workload)
        return Lease(workload, owner) if owner else None

    return [lease for lease in for_each_workload(lease_of, services.store) if lease is not None]


def _ended(executions: Iterable[str], ends: ExecutionEnds) -> dict[str, ExecutionEnd]:
    """Those that have ended, and how."""
    by_execution = {execution: ends.end_of(execution) for execution in dict.fromkeys(executions)}
    return {execution: end for execution, end in by_execution.items() if end is not None}


def _clean_up(
    workload: str, orphans: _Orphans, ends: Mapping[str, ExecutionEnd], *, services: Services
) -> None:
    for execution in orphans.executions:
        _abort(ends[execution], execution, services=services)
    for job in orphans.jobs:
        services.jobs.stop(job.name)
    for lease in orphans.leases:
        services.locks.release(workload, lease.execution)
    swept = Swept(services.clock.now(), orphans.stopped_jobs, orphans.released_leases_of)
    services.ledger.put_once(workload, swept.key, swept.to_entry())


def _abort(end: ExecutionEnd, execution: str, *, services: Services) -> None:
    """What the lost event would have done for a trial; a failure must not keep jobs alive."""
    trial = naming.machine_name(services.settings.stage, naming.EVALUATE)
    if end.status not in ENDED_BADLY or execution.split(":")[6] != trial:
        return
    try:
        abort_trial({"detail": end.detail}, services=services)
    except Exception:
        logger.exception("the clean-up of %s failed again", execution)
