"""A sample of every kind of request that a deployment sends, with every field that any of them has.

For checks of the requests' form where no workload is at hand: at synthesis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilegate.domain import naming
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.request.build import (
    ProductionJob,
    production_request,
    quality_request,
    speed_request,
)
from compilegate.domain.request.sections import JobContext
from compilegate.domain.workload.file import parse_workload

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
