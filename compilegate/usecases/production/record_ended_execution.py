"""Records the jobs of an execution of the TRAIN machine that ended badly, as it would have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import ENDED
from compilegate.domain.production.ended_execution import EndedExecution, unrecorded_attempts
from compilegate.domain.production.recorded_run import attempt_run
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
        if _trains_on(attempt.job, end, services):
            answer["going_on"].append(attempt.job)
            continue
        ended = read_attempt(attempt, begun, past.waits_of(begun.run), services)
        gave_up = None if ended.described else f"the execution ended: {end.why}"
        append_record(attempt_run(ended, gave_up=gave_up), ended, services)
        answer["recorded"].append(attempt.job)
    return answer


def _trains_on(job: str, end: EndedExecution, services: Services) -> bool:
    """Whether the job is left to train; one that is not is stopped.

    It is then recorded with the status that SageMaker gives it.
    """
    described = services.jobs.describe(job)
    if not described or described["TrainingJobStatus"] in ENDED:
        return False
    if not end.leaves_jobs:
        services.jobs.stop(job)
    return end.leaves_jobs
