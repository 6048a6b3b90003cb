"""Builds complete CreateTrainingJob requests: full runs, speed jobs and production's runs.

The job name lacks its retry suffix, which the state machine appends, so that a retried job never
reuses a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import encoded_document
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.planning.rounds import job_seconds, speed_job_seconds, spot_waiting_seconds
from compilegate.domain.request import launcher
from compilegate.domain.request.launcher import Launch, launch, launch_segments
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import BASELINE, Framework, Training, Workload
from compilegate.domain.workload.names import PARTITIONING, TAG_PREFIXES

# The sections of a CreateTrainingJob request, and what a deployment fixes for all of them.

# How a line of progress starts. Under mpirun's ``--tag-output`` the process stands before it:
# ``[1,0]<stdout>:`` as Open MPI writes it, ``[1,mpirank:0,algo-1]<stdout>:`` as the container
# toolkit rewrites that (process.py of sagemaker-training 5.1.1); Open MPI 5 adds a space.
PROGRESS_LINE = r"^(?:\[[^\]]*\]<stdout>: ?)?compilegate "
# Metrics a job prints on such lines.
PROGRESS_METRICS = ("step", "steps", "seconds", "samples_per_second", "loss")
NUMBER = r"([-+0-9.eE]+|nan|inf)"


@dataclass(frozen=True)
class JobSite:
    """Where jobs of a deployment run; a workload's name completes ``job_roles`` to a role's ARN."""

    stage: str
    bucket: str
    region: str
    job_roles: str
    kms_key_arn: str | None = None
    subnet_ids: Sequence[str] = ()
    security_group_ids: Sequence[str] = ()

    def context(self, workload: str, *, trial: str, execution: str, source_key: str) -> JobContext:
        """The context of a trial's jobs, or of a production run's: then ``trial`` is its id."""
        return JobContext(self, f"{self.job_roles}{workload}", trial, execution, source_key)


@dataclass(frozen=True)
class JobContext:
    """What a deployment and a trial fix for every job."""

    site: JobSite
    role_arn: str
    trial: str
    execution: str
    source_key: str

    def uri(self, key: str) -> str:
        """A key of the data bucket as S3 names it."""
        return f"s3://{self.site.bucket}/{key}"


def uploaded(workload: Workload, context: JobContext, digest: str) -> Workload:
    """The workload as it is once inputs that lie beside its file are uploaded under a digest."""
    inputs = {
        channel: uri
        if "://" in uri
        else context.uri(naming.input_prefix(workload.name, channel, digest))
        for channel, uri in workload.training.inputs.items()
    }
    return replace(workload, training=replace(workload.training, inputs=inputs))


def inputs(training: Training) -> dict[str, Any]:
    """One channel per input."""
    source = {"S3DataType": "S3Prefix", "S3DataDistributionType": "FullyReplicated"}
    channels = [
        {"ChannelName": name, "DataSource": {"S3DataSource": {**source, "S3Uri": uri}}}
        for name, uri in sorted(training.inputs.items())
    ]
    return {"InputDataConfig": channels} if channels else {}


def output(workload: Workload, context: JobContext) -> dict[str, str]:
    """Where the evidence goes, under the deployment's own key if it has one."""
    key = {"KmsKeyId": context.site.kms_key_arn} if context.site.kms_key_arn else {}
    return {"S3OutputPath": context.uri(naming.jobs_prefix(workload.name, context.trial)), **key}


def checkpoints(workload: Workload, run: str, context: JobContext) -> dict[str, str]:
    """What outlives a job: the workload's compile cache, or a spot job's own checkpoints.

    An interrupted spot job continues from its run's own checkpoints: a run that started from those
    of another arm or seed would not measure anything. Its compile cache lies among them.
    """
    if workload.training.spot:
        prefix = naming.checkpoint_prefix(workload.name, context.trial, run)
        return {"S3Uri": context.uri(prefix), "LocalPath": naming.CHECKPOINT_PATH}
    prefix = naming.compile_cache_prefix(workload.name)
    return {"S3Uri": context.uri(prefix), "LocalPath": naming.COMPILE_CACHE_PATH}


def environment(training: Training, arm: ArmPlan) -> dict[str, str]:
    """Where the compile cache and a spot job's checkpoints lie; the image that evidence names.

    The job's runtime works on a local copy of the compile cache and changes TORCHINDUCTOR_CACHE_DIR
    to it. That variable is for bundles uploaded by version 0.1, whose runtime lacks the copy: with
    it their cache stays warm.
    """
    folder = naming.CHECKPOINT_PATH if training.spot else naming.NO_CHECKPOINTS
    return {
        "COMPILEGATE_CHECKPOINT_DIR": folder,
        "COMPILEGATE_COMPILE_CACHE": naming.INDUCTOR_CACHE_PATH,
        "TORCHINDUCTOR_CACHE_DIR": naming.INDUCTOR_CACHE_PATH,
        "COMPILEGATE_IMAGE": arm.image,
        **training.environment,
    }


def machines(training: Training, arm: ArmPlan) -> dict[str, Any]:
    """The cluster, at the workload's own time limit.

    Without a key for its volume: SageMaker refuses one where the type has local storage, as every
    GPU type on file has, and encrypts such storage in hardware (API reference, ResourceConfig).
    """
    spot = {"EnableManagedSpotTraining": True} if training.spot else {}
    return {
        "ResourceConfig": {
            "InstanceType": arm.instance_type,
            "InstanceCount": arm.instance_count,
            "VolumeSizeInGB": training.volume_gb,
        },
        **spot,
        "StoppingCondition": stopping(training, job_seconds(training.max_runtime_hours)),
    }


def stopping(training: Training, runtime_seconds: int) -> dict[str, int]:
    """StoppingCondition of a job that trains at most ``runtime_seconds``.

    A spot job's waiting includes its training and may not be shorter.
    """
    limit = {"MaxRuntimeInSeconds": runtime_seconds}
    if not training.spot:
        return limit
    return {**limit, "MaxWaitTimeInSeconds": runtime_seconds + spot_waiting_seconds(training)}


def network(site: JobSite) -> dict[str, Any]:
    """The deployment's own network, if it has one."""
    if not site.subnet_ids:
        return {}
    return {
        "VpcConfig": {
            "Subnets": list(site.subnet_ids),
            "SecurityGroupIds": list(site.security_group_ids),
        }
    }


def metric_definitions(metric: str) -> list[dict[str, str]]:
    """Progress and the quality metric, by the pattern of their log line."""
    names = dict.fromkeys((*PROGRESS_METRICS, metric))
    return [
        {"Name": name, "Regex": rf"{PROGRESS_LINE}.*\b{re.escape(name)}={NUMBER}"} for name in names
    ]


def tags(
    workload: Workload, run: str, stage: str, arm: str, context: JobContext
) -> list[dict[str, str]]:
    """The trial's own tags, the owner's and the team's.

    Raises InvalidInputError for a key that begins with a reserved prefix.
    """
    for key in workload.tags:
        if key.lower().startswith(TAG_PREFIXES):
            raise InvalidInputError(
                f"begins with a reserved prefix ({' or '.join(TAG_PREFIXES)})",
                field=f"tags.{key}",
                fix="choose another key",
            )
    owner = {"owner": workload.owner} if workload.owner else {}
    values = {
        naming.TAG_WORKLOAD: workload.name,
        naming.TAG_TRIAL: context.trial,
        naming.TAG_RUN: run,
        naming.TAG_STAGE: stage,
        naming.TAG_ARM: arm,
        naming.TAG_EXECUTION: context.execution,
        **owner,
        **workload.tags,
    }
    return [{"Key": key, "Value": value} for key, value in values.items()]


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
    own = launcher.as_read_by(script, launcher.of_arm(workload, arm))
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
        of_arm = launcher.of_arm(workload, arm)
        own = launcher.as_read_by(_script(workload, arm), of_arm, shell=False)
        if PARTITIONING in own:
            values[PARTITIONING] = own.pop(PARTITIONING)
        values[f"arm_{index}"] = encoded_document({"name": arm.name, "hyperparameters": own})
    hours = workload.training.max_runtime_hours
    limit = speed_job_seconds(hours, arms=len(arms), blocks=blocks)
    start = launch_segments(arms[0], _framework(workload, arms[0]), SPEED_PROGRAM)
    return {
        **_request(workload, arms[0], start, values, run=run, context=context),
        "StoppingCondition": stopping(workload.training, limit),
        "Tags": tags(workload, run, "speed", ALL_ARMS, context),
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
    of_a_trial = tags(workload, job.run, naming.PRODUCTION_STAGE, arm.name, context)
    return {
        **request,
        "OutputDataConfig": {**request["OutputDataConfig"], "S3OutputPath": output},
        "CheckpointConfig": checkpoints,
        "Environment": {**request["Environment"], **job.variables},
        "Tags": [
            *(tag for tag in of_a_trial if tag["Key"] != naming.TAG_TRIAL),
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
    platform = launcher.of_platform(start.program, source_uri, context.site.region)
    training = workload.training
    return {
        "TrainingJobName": naming.job_base(workload.name, context.trial, run),
        "RoleArn": context.role_arn,
        "AlgorithmSpecification": {
            "TrainingImage": arm.image,
            "TrainingInputMode": "File",
            "EnableSageMakerMetricsTimeSeries": True,
            "MetricDefinitions": metric_definitions(workload.quality.metric),
        },
        "HyperParameters": launcher.encoded({**values, **start.hyperparameters, **platform}),
        "Environment": {**start.environment, **environment(training, arm)},
        **inputs(training),
        "OutputDataConfig": output(workload, context),
        "CheckpointConfig": checkpoints(workload, run, context),
        **machines(training, arm),
        **network(context.site),
    }


# A sample of every kind of request that a deployment sends, with every field that any of them has.
#
# For checks of the requests' form where no workload is at hand: at synthesis.

_DOCUMENT = {
    "schema": 1,
    "name": "sample",
    "owner": "ml-platform",
    "framework": {"name": "pytorch", "version": "2.13.0"},
    "model": {"family": "transformer", "name": "sample"},
    "training": {
        "source_dir": "source", "entry_point": "train.py", "instance_type": "ml.g5.xlarge",
        "instance_count": 2, "distribution": "torch_distributed", "precision": "bf16",
        "batch_size": 32, "learning_rate": 1e-3, "max_runtime_hours": 2, "max_wait_hours": 4,
        "spot": True, "volume_gb": 50, "hyperparameters": {"epochs": 1},
        "environment": {"A": "b"}, "inputs": {"train": "s3://bucket/train/"},
    },
    "shapes": {"static": True},
    "schedule": {"runs_per_week": 5, "run_hours": 1},
    "quality": {"metric": "eval_loss", "goal": "minimize", "margin": 0.05},
    "tags": {"cost-centre": "1"},
}  # fmt: skip
_ARM = ArmPlan(
    name="compile", compiler="torch_compile", image="1.dkr.ecr.us-east-1/image:1",
    instance_type="ml.g5.xlarge", instance_count=2, devices=2, usd_per_hour=1.0, precision="bf16",
    batch_size=32, learning_rate=1e-3, distribution="torch_distributed",
    overrides={"compiler": "torch_compile"},
)  # fmt: skip


def sample_requests(context: JobContext) -> Iterator[dict[str, Any]]:
    """A speed job, a full run and a production run on spot capacity, with inputs and tags."""
    workload = parse_workload(_DOCUMENT)
    yield speed_request(
        workload, [_ARM], run=naming.speed_run(0), first_block=0, blocks=1, steps=1,
        context=context,
    )  # fmt: skip
    yield quality_request(
        workload, _ARM, run=naming.quality_run(0, 1, 0), replicate=0, seed=0, context=context
    )
    job = ProductionJob(run="run", number=0, replicate=0, seed=0, tags={naming.TAG_DECISION: "d"})
    yield production_request(workload, _ARM, job, context)
