"""What a production job left behind, as the ledger keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.judging.evidence_file import check_full_run
from compilegate.ports import Services
from compilegate.usecases.collect import quality_run
from compilegate.usecases.job_output import read_output

# Of a trial's full run only: the probation says itself which stage and order a run has, and the
# loss curve stays in the job's output.
NOT_KEPT = ("stage", "mode", "order", "loss_curve")
# Characters of a run in the ledger, whose entries may have 400 KB each; a recorder's has 5,000.
LARGEST_RUN = 100_000


def output_uri(described: Mapping[str, Any]) -> str:
    """Where SageMaker leaves a job's output data, by the job's own description."""
    place = str(described["OutputDataConfig"]["S3OutputPath"]).rstrip("/")
    return f"{place}/{described['TrainingJobName']}/output/output.tar.gz"


def read_evidence(
    described: Mapping[str, Any], metric: str, services: Services
) -> tuple[dict[str, Any], str | None]:
    """The run as evidence has it, or nothing and why it cannot be told.

    What the judge could not read is none: kept as evidence, one such run would make every later
    look at the others fail.
    """
    uri = output_uri(described)
    try:
        found = services.store.fetch(uri)
        output = read_output(found.stream, found.size)
        run = quality_run(output, job=str(described["TrainingJobName"]), order=0, metric=metric)
        kept = {key: value for key, value in run.items() if key not in NOT_KEPT}
        check_full_run(kept)
        _check_size(kept)
    except NotFoundError as error:
        return {}, f"it left no evidence that can be read: {error}"
    except InvalidEvidenceError as error:
        return {}, f"its evidence cannot be read: {error}"
    return kept, None


def _check_size(run: Mapping[str, Any]) -> None:
    size = len(json.dumps(run))
    if size > LARGEST_RUN:
        raise InvalidEvidenceError(
            f"its summary has {size} characters, and the ledger takes {LARGEST_RUN} of a run"
        )


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
