"""Checks, before the CDK starts Node, that Step Functions passes on what jobs need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilegate.domain import naming
from compilegate.domain.deployment_settings import Settings
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.request.build import (
    JobContext,
    JobSite,
    ProductionJob,
    production_request,
    quality_request,
    speed_request,
)
from compilegate.domain.service_limits import unsupported_fields
from compilegate.domain.workload.file import parse_workload
from compilegate.facts import step_functions_fields


def check_job_fields(settings: Settings) -> None:
    """Refuse, at synthesis, a request field that Step Functions would not pass on to SageMaker.

    The state machines take each request as one expression, so Step Functions itself sees its
    fields only when the state runs. Raises InvalidInputError with the first such field.
    """
    vpc = settings.vpc
    site = JobSite(
        stage=settings.stage, bucket="bucket", region=settings.region, job_roles="role",
        kms_key_arn="key", subnet_ids=vpc.subnet_ids if vpc else (),
        security_group_ids=vpc.security_group_ids if vpc else (), tags=settings.tags,
        rules=settings.jobs,
    )  # fmt: skip
    context = site.context(
        "workload", trial="trial", execution="execution", source_key="source.tar.gz"
    )
    for request in sample_requests(context):
        for violation in unsupported_fields(step_functions_fields(), request):
            raise InvalidInputError(
                violation.rule,
                field=violation.path,
                value=violation.value,
                fix="leave it out of the request, or add it to "
                "compilegate/facts/step_functions_fields.json with a source",
            )


# A sample of every kind of request that a deployment sends, with every field that any of them has.

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
