"""Reads what a production job left behind."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.failures import COMPLETED
from compilegate.domain.outside import BROKEN, shorten
from compilegate.domain.production.job_evidence import JobEvidence, kept_run
from compilegate.ports import ObjectStore
from compilegate.usecases.job_output import read_stored

logger = logging.getLogger("compilegate")


def output_uri(described: Mapping[str, Any]) -> str:
    """Where SageMaker leaves a job's output data, by the job's own description."""
    place = str(described["OutputDataConfig"]["S3OutputPath"]).rstrip("/")
    return f"{place}/{described['TrainingJobName']}/output/output.tar.gz"


def job_evidence(described: Mapping[str, Any], metric: str, store: ObjectStore) -> JobEvidence:
    """The run as evidence, or why it cannot be read; nothing of a job that did not complete."""
    if described.get("TrainingJobStatus") != COMPLETED:
        return JobEvidence()
    try:
        output = read_stored(store.fetch(output_uri(described)))
        return JobEvidence(kept_run(output, described, metric))
    except NotFoundError as error:
        return JobEvidence(problem=f"it left no evidence that can be read: {error}")
    except (InvalidEvidenceError, *BROKEN) as error:
        # Whatever it left, the run is recorded: an error that no reader foresaw is ours to see.
        if not isinstance(error, InvalidEvidenceError):
            logger.exception("no evidence of %s", described["TrainingJobName"])
        return JobEvidence(problem=f"its evidence cannot be read: {shorten(str(error))}")
