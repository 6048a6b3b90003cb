"""Machines, time limits and network of a job."""

from __future__ import annotations

from typing import Any

from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.rounds import job_seconds, spot_waiting_seconds
from compilegate.domain.request.context import JobContext
from compilegate.domain.workload.model import Training


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


def network(context: JobContext) -> dict[str, Any]:
    """The deployment's own network, if it has one."""
    if not context.subnet_ids:
        return {}
    return {
        "VpcConfig": {
            "Subnets": list(context.subnet_ids),
            "SecurityGroupIds": list(context.security_group_ids),
        }
    }
