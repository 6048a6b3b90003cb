"""Records what is known of a run whose execution was stopped, ran out of time or failed.

Such an execution runs no state any more. A job that trains well goes on after a failure of the
machine, because its model is wanted; one whose execution a person stopped, or whose time was up,
is stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import explain
from compilegate.domain.production.begun import attempt_number, attempt_of, begun_runs
from compilegate.domain.production.runs import production_runs
from compilegate.domain.production.waiting import KIND as WAITING
from compilegate.ports import Services
from compilegate.usecases.outcome import ENDED
from compilegate.usecases.production.ended import describe, ended_attempt
from compilegate.usecases.production.recording import record_attempt

FAILED = "FAILED"

Detail = Mapping[str, Any]


def settle_ended(detail: Detail, *, services: Services) -> dict[str, Any]:
    """``detail`` is that of Step Functions' event. Safe to repeat.

    Returns which jobs were recorded and which go on without anybody waiting for them.
    """
    told: dict[str, list[str]] = {"recorded": [], "going_on": []}
    workload = json.loads(detail.get("input") or "{}").get("workload")
    if not isinstance(workload, str):
        return told  # a team's job: its event can be sent again
    entries = services.ledger.entries(workload)
    execution = str(detail["executionArn"])
    begun = next((one for one in begun_runs(entries) if one.execution == execution), None)
    if begun is None:  # a duplicate, or nothing to train
        return told
    known = {run.job for run in production_runs(entries) if run.run == begun.run}
    waits = [e for e in entries if e.get("kind") == WAITING and e["run"] == begun.run]
    jobs = services.jobs.statuses(naming.trial_job_prefix(workload, begun.run))
    lost = sorted(set(jobs) - known - {wait["job"] for wait in waits})
    if not lost and not known:
        lost = [naming.job_base(workload, begun.run, naming.attempt(0))]
    for job in lost:
        attempt = attempt_of(attempt_number(job), waits)
        event = {"workload": workload, "run": begun.run, "job": job, "attempt": attempt.to_dict()}
        told[_settle(event, detail, services)].append(job)
    return told


def _settle(event: Mapping[str, Any], detail: Detail, services: Services) -> str:
    """What became of the job that ``event`` names as the machine would have."""
    described = describe(str(event["job"]), services)
    if described is not None and described["TrainingJobStatus"] not in ENDED:
        if detail["status"] == FAILED:
            return "going_on"
        services.jobs.stop(str(event["job"]))
    why = explain(str(detail.get("error") or detail["status"]), str(detail.get("cause") or ""))
    gave_up = None if described is not None else f"the execution ended: {why}"
    record_attempt(ended_attempt(event, services), services, gave_up=gave_up)
    return "recorded"
