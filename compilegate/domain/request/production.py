"""The CreateTrainingJob request of a production run: a full run whose model is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.request.build import quality_request
from compilegate.domain.request.context import JobContext
from compilegate.domain.request.tags import tags
from compilegate.domain.workload.model import Workload


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
    place = context.uri(naming.production_jobs_prefix(workload.name, job.run))
    output = {**request["OutputDataConfig"], "S3OutputPath": place}
    own = tags(workload, job.run, naming.PRODUCTION_STAGE, arm.name, context)
    kept = [tag for tag in own if tag["Key"] != naming.TAG_TRIAL]
    added = [{"Key": key, "Value": value} for key, value in job.tags.items()]
    return {
        **request,
        "OutputDataConfig": output,
        "CheckpointConfig": _checkpoints(request["CheckpointConfig"], workload, place, job),
        "Environment": {**request["Environment"], **job.variables},
        "Tags": [*kept, *added],
    }


def _checkpoints(
    config: Mapping[str, str], workload: Workload, place: str, job: ProductionJob
) -> dict[str, str]:
    """An interrupted spot job's own checkpoints; any other job has the compile cache alone."""
    if not workload.training.spot:
        return dict(config)
    return {**config, "S3Uri": f"{place}/checkpoints/{naming.attempt(job.number)}/"}
