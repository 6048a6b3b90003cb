"""Writes the CreateTrainingJob requests of one round where the state machine reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.arm_plan import ArmPlan
from compilegate.domain.request import JobContext, quality_request, speed_request
from compilegate.usecases.trial import OpenTrial, to_json


def write_requests(
    step: Mapping[str, Any], opened: OpenTrial, round_number: int
) -> list[dict[str, str]]:
    """Store one request per job; returns run id, request key and job name base of each."""
    trial, spec, plan = opened.trial, opened.spec, opened.plan
    arms = [ArmPlan(**arm) for arm in plan["arms"]]
    context = job_context(opened)
    if step["stage"] == "speed":
        requests = {
            naming.speed_run(round_number): speed_request(
                spec.workload,
                [arm for arm in arms if arm.name in step["arms"]],
                run=naming.speed_run(round_number),
                first_block=step["block"],
                blocks=step["blocks"],
                steps=step["steps"],
                context=context,
            )
        }
    else:
        requests = _quality_requests(step, opened, arms, context)
    for run, request in requests.items():
        opened.services.store.put(
            naming.request_key(trial.workload, trial.trial, run), to_json(request)
        )
    return [
        {
            "run": run,
            "request_key": naming.request_key(trial.workload, trial.trial, run),
            "job_base": request["TrainingJobName"],
        }
        for run, request in requests.items()
    ]


def _quality_requests(
    step: Mapping[str, Any], opened: OpenTrial, arms: list[ArmPlan], context: JobContext
) -> dict[str, dict[str, Any]]:
    names = [arm.name for arm in arms]
    requests = {}
    for wanted in step["runs"]:
        index = names.index(wanted["arm"])
        replicate = list(opened.plan["seeds"]).index(wanted["seed"])
        run = naming.quality_run(replicate, index)
        requests[run] = quality_request(
            opened.spec.workload,
            arms[index],
            run=run,
            replicate=replicate,
            seed=wanted["seed"],
            context=context,
        )
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
