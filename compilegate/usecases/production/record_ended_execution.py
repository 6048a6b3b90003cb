"""Records what is known of a run whose execution was stopped, ran out of time or failed.

Such an execution runs no state any more. A job that trains well goes on after a failure of the
machine, because its model is needed; one whose execution a person stopped, or whose time was up,
is stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import explain
from compilegate.domain.production.attempt import attempt_number, attempt_of
from compilegate.domain.production.ending import ENDED
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.ports import Services
from compilegate.usecases.production.job_evidence import describe
from compilegate.usecases.production.record_attempt import read_attempt, write_run

FAILED = "FAILED"

Detail = Mapping[str, Any]


def record_ended_execution(detail: Detail, *, services: Services) -> dict[str, Any]:
    """``detail`` is that of Step Functions' event. Safe to repeat.

    Returns which jobs were recorded and which go on without anybody waiting for them.
    """
    answer: dict[str, list[str]] = {"recorded": [], "going_on": []}
    workload = json.loads(detail.get("input") or "{}").get("workload")
    if not isinstance(workload, str):
        return answer  # a team's job: its event can be sent again
    past = history(services.ledger.entries(workload))
    begun = past.run_of_execution(str(detail["executionArn"]))
    if begun is None:  # a duplicate, or nothing to train
        return answer
    recorded = {run.job for run in past.runs if run.run == begun.run}
    waits = past.waits_of(begun.run)
    jobs = services.jobs.statuses(naming.trial_job_prefix(workload, begun.run))
    lost = sorted(set(jobs) - recorded - {wait.job for wait in waits})
    if not lost and not recorded:
        lost = [naming.job_base(workload, begun.run, naming.attempt(0))]
    for job in lost:
        attempt = attempt_of(attempt_number(job), waits)
        event = {"workload": workload, "run": begun.run, "job": job, "attempt": attempt.to_dict()}
        answer[_record(event, past, detail, services)].append(job)
    return answer


def _record(
    event: Mapping[str, Any], past: WorkloadHistory, detail: Detail, services: Services
) -> str:
    """What became of the job that ``event`` names as the machine would have."""
    job = str(event["job"])
    described = describe(job, services.jobs)
    if described is not None and described["TrainingJobStatus"] not in ENDED:
        if detail["status"] == FAILED:
            return "going_on"
        services.jobs.stop(job)
    why = explain(str(detail.get("error") or detail["status"]), str(detail.get("cause") or ""))
    gave_up = None if described is not None else f"the execution ended: {why}"
    ended, spec = read_attempt(event, past, services)
    write_run(ended, spec, services, gave_up=gave_up)
    return "recorded"
