"""Writes the CreateTrainingJob requests of one round where the state machine reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.arm_plan import ArmPlan
from compilegate.domain.request import JobContext, quality_request, speed_request
from compilegate.usecases import evidence_document
from compilegate.usecases.job_limits import limit_seconds
from compilegate.usecases.trial import OpenTrial, to_json

Requests = dict[str, dict[str, Any]]


def write_requests(
    step: Mapping[str, Any],
    opened: OpenTrial,
    round_number: int,
    document: evidence_document.Document,
) -> list[dict[str, str]]:
    """Store one request per job; returns run id, request key and job name base of each."""
    trial, arms = opened.trial, [ArmPlan(**arm) for arm in opened.plan["arms"]]
    if step["stage"] == "speed":
        requests = _speed_request(step, opened, arms, round_number)
    else:
        done = {arm.name: evidence_document.full_runs(document, arm.name) for arm in arms}
        requests = _quality_requests(step, opened, arms, round_number, done=done)
    limit = {"MaxRuntimeInSeconds": limit_seconds(step, document, opened)}
    written = []
    for run, request in requests.items():
        key = naming.request_key(trial.workload, trial.trial, run)
        opened.services.store.put(key, to_json({**request, "StoppingCondition": limit}))
        base = request["TrainingJobName"]
        written.append({"run": run, "request_key": key, "job_base": base})
    return written


def _speed_request(
    step: Mapping[str, Any], opened: OpenTrial, arms: list[ArmPlan], round_number: int
) -> Requests:
    run = naming.speed_run(round_number)
    request = speed_request(
        opened.spec.workload,
        [arm for arm in arms if arm.name in step["arms"]],
        run=run,
        first_block=step["block"],
        blocks=step["blocks"],
        steps=step["steps"],
        context=job_context(opened),
    )
    return {run: request}


def _quality_requests(
    step: Mapping[str, Any],
    opened: OpenTrial,
    arms: list[ArmPlan],
    round_number: int,
    *,
    done: Mapping[str, int],
) -> Requests:
    """``done`` counts the full runs that each arm has behind it."""
    names, context = [arm.name for arm in arms], job_context(opened)
    replicates = dict(done)
    requests = {}
    for wanted in step["runs"]:
        index, seed = names.index(wanted["arm"]), int(wanted["seed"])
        run = naming.quality_run(round_number, index, seed)
        requests[run] = quality_request(
            opened.spec.workload,
            arms[index],
            run=run,
            replicate=replicates[wanted["arm"]],
            seed=seed,
            context=context,
        )
        replicates[wanted["arm"]] += 1
    return requests


def job_context(opened: OpenTrial) -> JobContext:
    """Where this trial's jobs run and where their data lies."""
    settings = opened.services.settings
    return JobContext(
        bucket=opened.services.store.bucket,
        region=settings.region,
        role_arn=settings.training_role_arn,
        trial=opened.trial.trial,
        execution=opened.plan["execution"],
        source_key=opened.spec.source_key,
        kms_key_arn=settings.kms_key_arn,
        subnet_ids=settings.subnet_ids,
        security_group_ids=settings.security_group_ids,
    )
