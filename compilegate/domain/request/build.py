"""Builds complete CreateTrainingJob requests.

The job name lacks its retry suffix, which the state machine appends, so that a retried job never
reuses a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import encoded_document
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.rounds import speed_job_seconds
from compilegate.domain.request import hyperparameters as told
from compilegate.domain.request.context import JobContext
from compilegate.domain.request.data import checkpoints, environment, inputs, output
from compilegate.domain.request.launcher import Launch, launch, launch_segments
from compilegate.domain.request.machines import machines, network, stopping
from compilegate.domain.request.metrics import metric_definitions
from compilegate.domain.request.tags import tags
from compilegate.domain.workload.model import BASELINE, Framework, Workload

SPEED_PROGRAM = f"{naming.RUNTIME_PACKAGE}/speed_gate.py"
ALL_ARMS = "all"


def quality_request(
    workload: Workload, arm: ArmPlan, *, run: str, replicate: int, seed: int, context: JobContext
) -> dict[str, Any]:
    """The full run of one arm with one seed.

    Raises InvalidInputError for a tag, a hyperparameter or a launcher that cannot be asked for.
    """
    script = _script(workload, arm)
    own = told.as_read_by(script, told.of_arm(workload, arm))
    values = {**own, "seed": seed, "replicate": replicate}
    start = launch(arm, _framework(workload, arm), script)
    return {
        **_request(workload, arm, start, values, run=run, context=context),
        "Tags": tags(workload, run, "quality", arm.name, context),
    }


def speed_request(
    workload: Workload,
    arms: Sequence[ArmPlan],
    *,
    run: str,
    first_block: int,
    blocks: int,
    steps: int,
    context: JobContext,
) -> dict[str, Any]:
    """One job that runs short segments of these arms back to back, block by block.

    Arms that need other nodes than the baseline come without it, in a job of their own.
    Raises InvalidInputError as ``quality_request`` does.
    """
    values: dict[str, Any] = {
        "program": _script(workload, arms[0]),
        "first_block": first_block,
        "blocks": blocks,
        "steps": steps,
    }
    if all(arm.name != BASELINE for arm in arms):
        values["baseline"] = "elsewhere"
    for index, arm in enumerate(arms):
        own = told.in_segment(_script(workload, arm), told.of_arm(workload, arm))
        if told.PARTITIONING in own:
            values[told.PARTITIONING] = own.pop(told.PARTITIONING)
        values[f"arm_{index}"] = encoded_document({"name": arm.name, "hyperparameters": own})
    hours = workload.training.max_runtime_hours
    limit = speed_job_seconds(hours, arms=len(arms), blocks=blocks)
    start = launch_segments(arms[0], _framework(workload, arms[0]), SPEED_PROGRAM)
    return {
        **_request(workload, arms[0], start, values, run=run, context=context),
        "StoppingCondition": stopping(workload.training, limit),
        "Tags": tags(workload, run, "speed", ALL_ARMS, context),
    }


def _script(workload: Workload, arm: ArmPlan) -> str:
    return arm.entry_point or workload.training.entry_point


def _framework(workload: Workload, arm: ArmPlan) -> Framework:
    return Framework(**arm.framework) if arm.framework else workload.framework


def _request(
    workload: Workload,
    arm: ArmPlan,
    start: Launch,
    values: Mapping[str, Any],
    *,
    run: str,
    context: JobContext,
) -> dict[str, Any]:
    source_uri = context.uri(context.source_key)
    platform = told.of_platform(start.program, source_uri, context.region)
    variables = {**start.environment, **environment(workload.training, arm)}
    return {
        "TrainingJobName": naming.job_base(workload.name, context.trial, run),
        "RoleArn": context.role_arn,
        "AlgorithmSpecification": {
            "TrainingImage": arm.image,
            "TrainingInputMode": "File",
            "EnableSageMakerMetricsTimeSeries": True,
            "MetricDefinitions": metric_definitions(workload.quality.metric),
        },
        "HyperParameters": told.encoded({**values, **start.hyperparameters, **platform}),
        "Environment": variables,
        **inputs(workload.training),
        "OutputDataConfig": output(workload, context),
        "CheckpointConfig": checkpoints(workload, run, context),
        **machines(workload.training, arm),
        **network(context),
    }
