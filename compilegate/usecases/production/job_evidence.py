"""What a production job left behind, as the ledger keeps it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import job_clock
from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.failures import COMPLETED
from compilegate.domain.outside import BROKEN, shorten
from compilegate.domain.production.recorded_run import JobEvidence
from compilegate.ports import ObjectStore
from compilegate.usecases.job_output import quality_run, read_stored

logger = logging.getLogger("compilegate")
# Of a trial's full run only: the probation says itself which stage and order a run has, and the
# loss curve stays in the job's output.
NOT_KEPT = ("stage", "mode", "order", "loss_curve")
# Characters of a run in the ledger, whose entries may have 400 KB each; a recorder's has 5,000.
LARGEST_RUN = 100_000


def output_uri(described: Mapping[str, Any]) -> str:
    """Where SageMaker leaves a job's output data, by the job's own description."""
    place = str(described["OutputDataConfig"]["S3OutputPath"]).rstrip("/")
    return f"{place}/{described['TrainingJobName']}/output/output.tar.gz"


def job_evidence(described: Mapping[str, Any], metric: str, store: ObjectStore) -> JobEvidence:
    """The run as evidence, or why it cannot be read; nothing of a job that did not complete.

    A run that the judge could not read is not kept: it would make every later review fail.
    """
    if described.get("TrainingJobStatus") != COMPLETED:
        return JobEvidence()
    try:
        output = read_stored(store.fetch(output_uri(described)))
        run = quality_run(output, job=str(described["TrainingJobName"]), metric=metric)
        job_clock.check_run(described, run.wall_seconds, run.record)
        kept = {key: value for key, value in run.record.items() if key not in NOT_KEPT}
    except NotFoundError as error:
        return JobEvidence(problem=f"it left no evidence that can be read: {error}")
    except (InvalidEvidenceError, *BROKEN) as error:
        # Whatever it left, the run is recorded: an error that no reader foresaw is ours to see.
        if not isinstance(error, InvalidEvidenceError):
            logger.exception("no evidence of %s", described["TrainingJobName"])
        return JobEvidence(problem=f"its evidence cannot be read: {shorten(str(error))}")
    size = len(json.dumps(kept))
    if size > LARGEST_RUN:
        limit = f"its summary has {size} characters, and the ledger takes {LARGEST_RUN} of a run"
        return JobEvidence(problem=f"its evidence cannot be read: {limit}")
    return JobEvidence(kept)
