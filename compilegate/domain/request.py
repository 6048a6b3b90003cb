"""Builds complete CreateTrainingJob requests.

Hyperparameters are JSON-encoded text, as the SageMaker Python SDK sends them and the
training toolkit decodes them. The job name lacks its retry suffix, which the state machine
appends, so that a retried job never reuses a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.arm_plan import ArmPlan
from compilegate.domain.rounds import job_seconds, speed_job_seconds
from compilegate.domain.workload import MANAGED_COMPILER, Training, Workload

SPEED_PROGRAM = f"{naming.RUNTIME_PACKAGE}/speed_gate.py"
# Metrics a job prints on lines that start with `compilegate `.
PROGRESS_METRICS = ("step", "steps", "seconds", "samples_per_second", "loss")
NUMBER = r"([-+0-9.eE]+|nan|inf)"


@dataclass(frozen=True)
class JobContext:
    """Where a trial's jobs run and where their data lies."""

    bucket: str
    region: str
    role_arn: str
    trial: str
    execution: str
    source_key: str
    kms_key_arn: str | None = None
    subnet_ids: Sequence[str] = ()
    security_group_ids: Sequence[str] = ()

    def uri(self, key: str) -> str:
        """A key of the data bucket as S3 names it."""
        return f"s3://{self.bucket}/{key}"


def quality_request(
    workload: Workload, arm: ArmPlan, *, run: str, replicate: int, seed: int, context: JobContext
) -> dict[str, Any]:
    """The full run of one arm with one seed."""
    hyperparameters = {
        **_hyperparameters(workload, arm),
        "seed": seed,
        "replicate": replicate,
    }
    return _request(
        workload,
        arm,
        run=run,
        stage="quality",
        program=workload.training.entry_point,
        hyperparameters=hyperparameters,
        context=context,
    )


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
    """One job that runs short segments of every arm back to back, block by block."""
    hyperparameters: dict[str, Any] = {
        "program": workload.training.entry_point,
        "first_block": first_block,
        "blocks": blocks,
        "steps": steps,
    }
    for index, arm in enumerate(arms):
        segment = {"name": arm.name, "hyperparameters": _hyperparameters(workload, arm)}
        # Text inside text: the toolkit decodes once and hands the script the JSON as written.
        hyperparameters[f"arm_{index}"] = json.dumps(segment, sort_keys=True)
    request = _request(
        workload,
        arms[0],
        run=run,
        stage="speed",
        program=SPEED_PROGRAM,
        hyperparameters=hyperparameters,
        context=context,
    )
    hours = workload.training.max_runtime_hours
    limit = speed_job_seconds(hours, arms=len(arms), blocks=blocks)
    return {**request, "StoppingCondition": {"MaxRuntimeInSeconds": limit}}


def _hyperparameters(workload: Workload, arm: ArmPlan) -> dict[str, Any]:
    return {
        **workload.training.hyperparameters,
        "arm": arm.name,
        "compiler": arm.compiler,
        "precision": arm.precision,
        "batch_size": arm.batch_size,
        "learning_rate": arm.learning_rate,
    }


def _request(
    workload: Workload,
    arm: ArmPlan,
    *,
    run: str,
    stage: str,
    program: str,
    hyperparameters: Mapping[str, Any],
    context: JobContext,
) -> dict[str, Any]:
    request = {
        "TrainingJobName": naming.job_base(workload.name, context.trial, run),
        "RoleArn": context.role_arn,
        "AlgorithmSpecification": {
            "TrainingImage": arm.image,
            "TrainingInputMode": "File",
            "EnableSageMakerMetricsTimeSeries": True,
            "MetricDefinitions": _metric_definitions(workload.quality.metric),
        },
        "HyperParameters": {
            key: json.dumps(value)
            for key, value in {
                **hyperparameters,
                **_launcher(arm),
                "sagemaker_program": program,
                "sagemaker_submit_directory": context.uri(context.source_key),
                "sagemaker_region": context.region,
            }.items()
        },
        "OutputDataConfig": _output(workload, context),
        "Tags": _tags(workload, run, stage, arm.name if stage == "quality" else "all", context),
        "ProfilerConfig": {"DisableProfiler": True},
    }
    return {
        **request,
        **_machines(workload.training, arm),
        **_caches(workload, arm, context),
        **_inputs(workload.training),
        **_network(context),
    }


def _output(workload: Workload, context: JobContext) -> dict[str, str]:
    output = {"S3OutputPath": context.uri(naming.jobs_prefix(workload.name, context.trial))}
    if context.kms_key_arn:
        output["KmsKeyId"] = context.kms_key_arn
    return output


def _machines(training: Training, arm: ArmPlan) -> dict[str, Any]:
    return {
        "ResourceConfig": {
            "InstanceType": arm.instance_type,
            "InstanceCount": arm.instance_count,
            "VolumeSizeInGB": training.volume_gb,
        },
        # SageMaker stops a job at its limit; what is left of the budget may shorten it.
        "StoppingCondition": {"MaxRuntimeInSeconds": job_seconds(training.max_runtime_hours)},
    }


def _caches(workload: Workload, arm: ArmPlan, context: JobContext) -> dict[str, Any]:
    """The compile cache, kept between jobs, and the environment that points to it."""
    return {
        "CheckpointConfig": {
            "S3Uri": context.uri(naming.compile_cache_prefix(workload.name)),
            "LocalPath": naming.CHECKPOINT_PATH,
        },
        "Environment": {
            "TORCHINDUCTOR_CACHE_DIR": f"{naming.CHECKPOINT_PATH}/inductor",
            "COMPILEGATE_IMAGE": arm.image,
            **workload.training.environment,
        },
    }


def _launcher(arm: ArmPlan) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if arm.compiler == MANAGED_COMPILER:
        keys |= {
            "sagemaker_training_compiler_enabled": True,
            "sagemaker_training_compiler_debug_mode": False,
        }
    if arm.distribution == "torch_distributed":
        keys |= {
            "sagemaker_torch_distributed_enabled": True,
            "sagemaker_instance_type": arm.instance_type,
        }
    if arm.distribution == "pytorchddp":
        keys |= {
            "sagemaker_pytorch_ddp_enabled": True,
            "sagemaker_instance_type": arm.instance_type,
        }
    if arm.distribution == "pytorchxla":
        keys |= {"sagemaker_pytorch_xla_multi_worker_enabled": True}
    return keys


def _metric_definitions(metric: str) -> list[dict[str, str]]:
    names = dict.fromkeys((*PROGRESS_METRICS, metric))
    return [
        {"Name": name, "Regex": rf"^compilegate .*\b{re.escape(name)}={NUMBER}"} for name in names
    ]


def _inputs(training: Training) -> dict[str, Any]:
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


def _tags(
    workload: Workload, run: str, stage: str, arm: str, context: JobContext
) -> list[dict[str, str]]:
    tags = {
        naming.TAG_WORKLOAD: workload.name,
        naming.TAG_TRIAL: context.trial,
        naming.TAG_RUN: run,
        naming.TAG_STAGE: stage,
        naming.TAG_ARM: arm,
        naming.TAG_EXECUTION: context.execution,
    }
    if workload.owner:
        tags["owner"] = workload.owner
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _network(context: JobContext) -> dict[str, Any]:
    if not context.subnet_ids:
        return {}
    return {
        "VpcConfig": {
            "Subnets": list(context.subnet_ids),
            "SecurityGroupIds": list(context.security_group_ids),
        }
    }
