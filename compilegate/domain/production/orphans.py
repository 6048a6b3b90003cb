"""Which training jobs and locks belong to executions that have ended.

The event that Step Functions sends when an execution ends badly cleans up within seconds. It can
be lost, or its function can fail; jobs then bill until their own time limit, and a lock keeps
the workload from its next trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming

# So long after an execution's end its own clean-up, retries included, is over.
GRACE_SECONDS = 3600
FAILED = "FAILED"
# An execution ended by itself or was ended from outside before it had a verdict or a model.
ENDED_BADLY = (FAILED, "TIMED_OUT", "ABORTED")


@dataclass(frozen=True)
class TaggedJob:
    """A training job in progress, from its tags; ``stage`` is ``compilegate:stage``.

    ``created`` in epoch seconds, whole ones as the clock's.
    """

    name: str
    workload: str
    execution: str
    stage: str
    created: int
    owner: str | None = None


@dataclass(frozen=True)
class ExecutionEnd:
    """How an execution ended; ``at`` in epoch seconds, whole ones as the clock's.

    ``detail`` is that of the event which Step Functions sends at the end. One that has not ended is
    ``NOT_ENDED``. One that Step Functions has forgotten is ``FORGOTTEN``, and ended long ago.
    """

    status: str
    at: float
    detail: Mapping[str, Any] = field(default_factory=dict)


NOT_ENDED, FORGOTTEN = ExecutionEnd("RUNNING", math.inf), ExecutionEnd("", -math.inf)


@dataclass(frozen=True)
class Orphans:
    """What ended executions left of one workload; ``locks`` are by those that hold them."""

    jobs: tuple[TaggedJob, ...] = ()
    locks: tuple[str, ...] = ()


def of_deployment(execution: str, stage: str) -> bool:
    """Whether an execution's ARN is of this stage's state machines."""
    machines = [naming.machine_name(stage, machine) for machine in naming.MACHINES]
    return naming.machine_of(execution) in machines


def orphans_by_workload(
    jobs: Iterable[TaggedJob],
    locks: Iterable[tuple[str, str]],
    ends: Mapping[str, ExecutionEnd],
    *,
    now: int,
    grace_seconds: float = GRACE_SECONDS,
) -> dict[str, Orphans]:
    """What ended executions have left, by workload in order of name.

    ``locks`` are of a workload and an execution each. A team's own job waits for no execution. A
    production job of an execution that failed continues, because its model is needed
    (usecases/production/record_run.py).
    """
    over = {one: end for one, end in ends.items() if is_over(end, now, grace_seconds)}
    left_jobs = [
        job
        for job in jobs
        if job.stage != naming.TEAM_STAGE
        and job.execution in over
        and now - job.created >= grace_seconds
        and not (job.stage == naming.PRODUCTION_STAGE and over[job.execution].status == FAILED)
    ]
    left_locks = [(workload, execution) for workload, execution in locks if execution in over]
    return {
        workload: Orphans(
            tuple(job for job in left_jobs if job.workload == workload),
            tuple(execution for locked, execution in left_locks if locked == workload),
        )
        for workload in sorted({job.workload for job in left_jobs} | {*dict(left_locks)})
    }


def lacks_clean_up(execution: str, end: ExecutionEnd, stage: str) -> bool:
    """Whether the event that cleans up after a trial has got lost: it ended badly, and left work.

    A production run needs no clean-up of its own.
    """
    machine = naming.machine_name(stage, naming.EVALUATE)
    return end.status in ENDED_BADLY and naming.machine_of(execution) == machine


def is_over(end: ExecutionEnd, now: int, grace_seconds: float = GRACE_SECONDS) -> bool:
    """Whether it ended so long ago that its own clean-up is over."""
    return now - end.at >= grace_seconds
