"""Requests of every kind of job that a plan would start, with stand-ins for what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.cli import project
from compilegate.domain import naming
from compilegate.domain.judging.next_step import FIRST_SEED
from compilegate.domain.planning.arm_plan import CONTROL
from compilegate.domain.planning.plan import Plan
from compilegate.domain.planning.speed_jobs import speed_jobs
from compilegate.domain.request.build import quality_request, speed_request
from compilegate.domain.request.context import JobContext
from compilegate.domain.request.data import uploaded
from compilegate.domain.workload.model import Workload

TRIAL, EXECUTION, DIGEST = "trial-id", "execution", "digest"
PLACEHOLDERS = {
    project.UNKNOWN_BUCKET: "the deployment's data bucket",
    project.UNKNOWN_ROLE: "the deployment's training role",
    TRIAL: "eight characters that each trial gets",
    EXECUTION: "ARN of the trial's execution",
    DIGEST: "digest of the uploaded code, or of an uploaded input",
}


def examples(workload: Workload, found: Plan) -> list[Mapping[str, Any]]:
    """The first round's speed jobs, and a full run of every arm that may get one."""
    context = JobContext(
        bucket=project.UNKNOWN_BUCKET,
        region=found.region,
        role_arn=project.UNKNOWN_ROLE,
        trial=TRIAL,
        execution=EXECUTION,
        source_key=naming.source_key(workload.name, DIGEST),
    )
    registered = uploaded(workload, context, DIGEST)
    # The judge begins with a single block, which is enough to stop most losers.
    first = {"block": 0, "blocks": 1, "arms": [arm.name for arm in found.arms]}
    speed = [
        speed_request(
            registered, job.arms, run=job.run(0), first_block=job.first_block,
            blocks=job.blocks, steps=found.speed_steps, context=context,
        )
        for job in speed_jobs(found.arms, first, {})
    ]  # fmt: skip
    full = [
        quality_request(
            registered, arm, run=naming.quality_run(1, index, FIRST_SEED), replicate=0,
            seed=FIRST_SEED, context=context,
        )
        for index, arm in enumerate(found.arms)
        if arm.role != CONTROL
    ]  # fmt: skip
    return [*speed, *full]
