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
from compilegate.domain.workload import MANAGED_COMPILER, Workload

SPEED_PROGRAM = f"{naming.RUNTIME_PACKAGE}/speed_gate.py"
# Metrics a job prints on lines that start with `compilegate `.
PROGRESS_METRICS = ("step", "steps", "seconds", "samples_per_second", "loss")
NUMBER = r"([-+0-9.eE]+|nan|inf)"
# SageMaker stops a job at its limit; the speed job shares one limit between its segments.
MIN_RUNTIME_SECONDS = 900


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
    return _request(
        workload,
        arms[0],
        run=run,
        stage="speed",
        program=SPEED_PROGRAM,
        hyperparameters=hyperparameters,
        context=context,
    )


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
    training = workload.training
    base = f"s3://{context.bucket}/"
    request: dict[str, Any] = {
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
                "sagemaker_submit_directory": base + context.source_key,
                "sagemaker_region": context.region,
            }.items()
        },
        "InputDataConfig": [_channel(name, uri) for name, uri in sorted(training.inputs.items())],
        "OutputDataConfig": {
            "S3OutputPath": base + naming.jobs_prefix(workload.name, context.trial)
        },
        "ResourceConfig": {
            "InstanceType": arm.instance_type,
            "InstanceCount": arm.instance_count,
            "VolumeSizeInGB": training.volume_gb,
        },
        "StoppingCondition": {
            "MaxRuntimeInSeconds": max(
                MIN_RUNTIME_SECONDS, round(training.max_runtime_hours * 3600)
            )
        },
        "CheckpointConfig": {
            "S3Uri": base + naming.compile_cache_prefix(workload.name),
            "LocalPath": naming.CHECKPOINT_PATH,
        },
        "Environment": {
            "TORCHINDUCTOR_CACHE_DIR": f"{naming.CHECKPOINT_PATH}/inductor",
            "COMPILEGATE_IMAGE": arm.image,
            **training.environment,
        },
        "Tags": _tags(workload, run, stage, arm.name if stage == "quality" else "all", context),
        "ProfilerConfig": {"DisableProfiler": True},
    }
    if not request["InputDataConfig"]:
        del request["InputDataConfig"]
    return {**request, **_security(context, request)}


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


def _security(context: JobContext, request: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if context.kms_key_arn:
        settings["OutputDataConfig"] = {
            **request["OutputDataConfig"],
            "KmsKeyId": context.kms_key_arn,
        }
    if context.subnet_ids:
        settings["VpcConfig"] = {
            "Subnets": list(context.subnet_ids),
            "SecurityGroupIds": list(context.security_group_ids),
        }
    return settings
