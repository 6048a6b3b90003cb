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
from compilegate.domain.production.begun import Attempt, BegunRun, begun_runs
from compilegate.domain.production.runs import production_runs
from compilegate.domain.production.waiting import KIND as WAITING
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services
from compilegate.usecases.outcome import ENDED
from compilegate.usecases.production.ended import describe, ended_attempt
from compilegate.usecases.production.production_job import spec_of
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
    waited = {e["job"] for e in entries if e.get("kind") == WAITING and e["run"] == begun.run}
    jobs = services.jobs.statuses(naming.trial_job_prefix(workload, begun.run))
    lost = sorted(set(jobs) - known - waited)
    if not lost and not known:
        lost = [naming.job_base(workload, begun.run, naming.attempt(0))]
    for job in lost:
        told[_settle(workload, begun, job, detail, services)].append(job)
    return told


def _settle(workload: str, begun: BegunRun, job: str, detail: Detail, services: Services) -> str:
    described = describe(job, services)
    if described is not None and described["TrainingJobStatus"] not in ENDED:
        if detail["status"] == FAILED:
            return "going_on"
        services.jobs.stop(job)
    own = spec_of(begun, workload, services).workload.training.instance_type
    attempt = _attempt(begun, job, described or {}, own)
    event = {"workload": workload, "run": begun.run, "job": job, "attempt": attempt.to_dict()}
    why = explain(str(detail.get("error") or detail["status"]), str(detail.get("cause") or ""))
    gave_up = None if described is not None else f"the execution ended: {why}"
    record_attempt(ended_attempt(event, services), services, gave_up=gave_up)
    return "recorded"


def _attempt(begun: BegunRun, job: str, described: Mapping[str, Any], own_type: str) -> Attempt:
    """Which attempt a job was, by what it was asked to train."""
    number = job.rpartition("-p")[2].partition("-")[0]
    told = described.get("HyperParameters", {}).get("arm")
    kind = described.get("ResourceConfig", {}).get("InstanceType", own_type)
    arm = begun.arm if told is None else json.loads(told)
    return Attempt(
        number=int(number) if number.isdigit() else 0,
        rerun=arm == BASELINE and begun.arm != BASELINE,
        instance_type=kind if arm == BASELINE and kind != own_type else None,
    )
