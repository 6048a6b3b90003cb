"""Builds complete CreateTrainingJob requests: full runs, speed jobs and production's runs.

The job name lacks its retry suffix, which the state machine appends, so that a retried job never
reuses a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import encoded_document
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.rounds import speed_job_seconds
from compilegate.domain.request import hyperparameters, sections
from compilegate.domain.request.launcher import Launch, launch, launch_segments
from compilegate.domain.request.sections import JobContext
from compilegate.domain.workload.model import BASELINE, Framework, Workload
from compilegate.domain.workload.names import PARTITIONING

SPEED_PROGRAM = f"{naming.RUNTIME_PACKAGE}/speed_gate.py"
ALL_ARMS = "all"


@dataclass(frozen=True)
class ProductionJob:
    """One attempt at a run; ``run`` is the run's id, ``number`` the attempt's from 0.

    ``replicate`` counts the workload's runs. ``variables`` and ``tags`` are the job's beside the
    workload's own: what the script may want to know of the decision behind it.
    """

    run: str
    number: int
    replicate: int
    seed: int
    variables: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


def quality_request(
    workload: Workload, arm: ArmPlan, *, run: str, replicate: int, seed: int, context: JobContext
) -> dict[str, Any]:
    """The full run of one arm with one seed.

    Raises InvalidInputError for a tag, hyperparameter or launcher that is not allowed.
    """
    script = _script(workload, arm)
    own = hyperparameters.as_read_by(script, hyperparameters.of_arm(workload, arm))
    values = {**own, "seed": seed, "replicate": replicate}
    start = launch(arm, _framework(workload, arm), script)
    return {
        **_request(workload, arm, start, values, run=run, context=context),
        "Tags": sections.tags(workload, run, "quality", arm.name, context),
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
        of_arm = hyperparameters.of_arm(workload, arm)
        own = hyperparameters.as_read_by(_script(workload, arm), of_arm, shell=False)
        if PARTITIONING in own:
            values[PARTITIONING] = own.pop(PARTITIONING)
        values[f"arm_{index}"] = encoded_document({"name": arm.name, "hyperparameters": own})
    hours = workload.training.max_runtime_hours
    limit = speed_job_seconds(hours, arms=len(arms), blocks=blocks)
    start = launch_segments(arms[0], _framework(workload, arms[0]), SPEED_PROGRAM)
    return {
        **_request(workload, arms[0], start, values, run=run, context=context),
        "StoppingCondition": sections.stopping(workload.training, limit),
        "Tags": sections.tags(workload, run, "speed", ALL_ARMS, context),
    }


def production_request(
    workload: Workload, arm: ArmPlan, job: ProductionJob, context: JobContext
) -> dict[str, Any]:
    """The request; ``context.trial`` is the run's id. Raises InvalidInputError as a trial's does.

    Its output lies where nothing expires, a spot job's checkpoints beside it.
    """
    request = quality_request(
        workload,
        arm,
        run=naming.attempt(job.number),
        replicate=job.replicate,
        seed=job.seed,
        context=context,
    )
    output = context.uri(naming.production_jobs_prefix(workload.name, job.run))
    checkpoints = request["CheckpointConfig"]
    if workload.training.spot:  # any other job has the compile cache alone
        own = f"{output}/checkpoints/{naming.attempt(job.number)}/"
        checkpoints = {**checkpoints, "S3Uri": own}
    tags = sections.tags(workload, job.run, naming.PRODUCTION_STAGE, arm.name, context)
    return {
        **request,
        "OutputDataConfig": {**request["OutputDataConfig"], "S3OutputPath": output},
        "CheckpointConfig": checkpoints,
        "Environment": {**request["Environment"], **job.variables},
        "Tags": [
            *(tag for tag in tags if tag["Key"] != naming.TAG_TRIAL),
            *({"Key": key, "Value": value} for key, value in job.tags.items()),
        ],
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
    platform = hyperparameters.of_platform(start.program, source_uri, context.site.region)
    training = workload.training
    return {
        "TrainingJobName": naming.job_base(workload.name, context.trial, run),
        "RoleArn": context.role_arn,
        "AlgorithmSpecification": {
            "TrainingImage": arm.image,
            "TrainingInputMode": "File",
            "EnableSageMakerMetricsTimeSeries": True,
            "MetricDefinitions": sections.metric_definitions(workload.quality.metric),
        },
        "HyperParameters": hyperparameters.encoded({**values, **start.hyperparameters, **platform}),
        "Environment": {**start.environment, **sections.environment(training, arm)},
        **sections.inputs(training),
        "OutputDataConfig": sections.output(workload, context),
        "CheckpointConfig": sections.checkpoints(workload, run, context),
        **sections.machines(training, arm),
        **sections.network(context.site),
    }
