"""The sections of a CreateTrainingJob request, and what a deployment fixes for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.rounds import job_seconds, spot_waiting_seconds
from compilegate.domain.workload.model import Training, Workload
from compilegate.domain.workload.names import TAG_PREFIXES

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
