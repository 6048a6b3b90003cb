"""What a job reads and what it leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.request.context import JobContext
from compilegate.domain.workload.model import Training, Workload


def uploaded(workload: Workload, context: JobContext, digest: str) -> Workload:
    """The workload as it is once inputs that lie beside its file are uploaded under a digest."""
    places = {
        channel: place
        if "://" in place
        else context.uri(naming.input_prefix(workload.name, channel, digest))
        for channel, place in workload.training.inputs.items()
    }
    return replace(workload, training=replace(workload.training, inputs=places))


def inputs(training: Training) -> dict[str, Any]:
    """One channel per input."""
    channels = [_channel(name, uri) for name, uri in sorted(training.inputs.items())]
    return {"InputDataConfig": channels} if channels else {}


def _channel(name: str, uri: str) -> dict[str, Any]:
    return {
        "ChannelName": name,
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": uri,
                "S3DataDistributionType": "FullyReplicated",
            }
        },
    }


def output(workload: Workload, context: JobContext) -> dict[str, str]:
    """Where the evidence goes, under the deployment's own key if it has one."""
    key = {"KmsKeyId": context.kms_key_arn} if context.kms_key_arn else {}
    return {"S3OutputPath": context.uri(naming.jobs_prefix(workload.name, context.trial)), **key}


def checkpoints(workload: Workload, run: str, context: JobContext) -> dict[str, str]:
    """What outlives a job: the workload's compile cache, or a spot job's own checkpoints.

    An interrupted spot job goes on from its checkpoints. They are its run's own: a run that found
    those of another arm or seed would not measure anything. Its compile cache lies among them.
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
