"""What a production job left behind, as the ledger keeps it."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.ports import Services
from compilegate.usecases.collect import quality_run
from compilegate.usecases.job_output import read_output

# Of a trial's full run only: the probation says itself which stage and order a run has, and the
# loss curve stays in the job's output.
NOT_KEPT = ("stage", "mode", "order", "loss_curve")


def output_uri(described: Mapping[str, Any]) -> str:
    """Where SageMaker leaves a job's output data, by the job's own description."""
    place = str(described["OutputDataConfig"]["S3OutputPath"]).rstrip("/")
    return f"{place}/{described['TrainingJobName']}/output/output.tar.gz"


def read_evidence(
    described: Mapping[str, Any], metric: str, services: Services
) -> tuple[dict[str, Any], str | None]:
    """The run as evidence has it, or nothing and why it cannot be told."""
    uri = output_uri(described)
    try:
        output = read_output(services.store.fetch(uri))
        run = quality_run(output, job=str(described["TrainingJobName"]), order=0, metric=metric)
    except NotFoundError as error:
        return {}, f"it left no evidence that can be read: {error}"
    except (InvalidEvidenceError, tarfile.TarError, EOFError) as error:
        return {}, f"its evidence cannot be read: {error}"
    return {key: value for key, value in run.items() if key not in NOT_KEPT}, None


def failed(seed: int | None, reason: str | None) -> dict[str, Any]:
    """The run of a job that did not complete: a result, not missing data."""
    return {
        "seed": seed, "metric": None, "wall_seconds": None, "finished": False, "reason": reason,
    }  # fmt: skip


def times(described: Mapping[str, Any], *, otherwise: float) -> tuple[float, float]:
    """When a job began to train and when it ended, in epoch seconds; as near as it is known."""
    began = _first(described, "TrainingStartTime", "CreationTime", otherwise=otherwise)
    return began, _first(described, "TrainingEndTime", "LastModifiedTime", otherwise=began)


def _first(described: Mapping[str, Any], *names: str, otherwise: float) -> float:
    found = [described.get(name) for name in names]
    return next((one.timestamp() for one in found if isinstance(one, datetime)), otherwise)


def billable_seconds(described: Mapping[str, Any]) -> float | None:
    """What SageMaker bills for the job, wall clock of the cluster."""
    found = described.get("BillableTimeInSeconds")
    return float(found) if isinstance(found, int | float) else None
