"""Records the jobs of an execution of the TRAIN machine that ended badly, as it would have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import ENDED
from compilegate.domain.production.attempts import AttemptEnd
from compilegate.domain.production.ended_execution import EndedExecution, unrecorded_attempts
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.recorded_run import attempt_run
from compilegate.domain.records.runs import BegunRun
from compilegate.ports import Services
from compilegate.usecases.production.record_run import append_record, read_attempt


def record_ended_execution(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the jobs of an execution that was stopped, ran out of time or failed. Safe to repeat.

    ``event`` is Step Functions' own. A job that trains continues after a failure of the machine,
    because its model is needed; where a person stopped the execution, or its time was up, the job
    is stopped. Returns which jobs were recorded, and which continue unattended.
    """
    end = EndedExecution.from_event(event["detail"])
    answer: dict[str, list[str]] = {"recorded": [], "going_on": []}
    if end.workload is None:
        return answer  # a team's job: its event can be sent again
    past = services.ledger.history(end.workload)
    begun = past.run_of_execution(end.execution)
    if begun is None:  # a duplicate, or nothing to train
        return answer
    same_prefix = services.jobs.statuses(naming.trial_job_prefix(end.workload, begun.run))
    for attempt in unrecorded_attempts(end.workload, begun, past, same_prefix):
        answer[_record_unattended(attempt, begun, past, end, services)].append(attempt.job)
    return answer


def _record_unattended(
    attempt: AttemptEnd,
    begun: BegunRun,
    past: WorkloadHistory,
    end: EndedExecution,
    services: Services,
) -> str:
    """Record the attempt as the machine would have; returns the key of the answer."""
    described = services.jobs.describe(attempt.job)
    if described and described["TrainingJobStatus"] not in ENDED:
        if end.leaves_jobs:
            return "going_on"
        # Stopped before it is read: the run is recorded with the status that SageMaker then gives.
        services.jobs.stop(attempt.job)
    gave_up = None if described else f"the execution ended: {end.why}"
    ended = read_attempt(attempt, begun, past.waits_of(begun.run), services)
    append_record(attempt_run(ended, gave_up=gave_up), ended, services)
    return "recorded"
