"""What a production job left behind, as the ledger keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import job_output
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.job_output import JobOutput, quality_run
from compilegate.domain.records.production import METRIC_NAME
from compilegate.domain.workload.quality import Quality

# Of a trial's full run only: the probation says itself which stage and order a run has, and the
# loss curve stays in the job's output.
NOT_KEPT = ("stage", "mode", "order", "loss_curve")
# Characters of a run in the ledger, whose entries may have 400 KB each; a recorder's has 5,000.
LARGEST_RUN = 100_000


def output_uri(described: Mapping[str, Any]) -> str:
    """Where SageMaker leaves a job's output data, by the job's own description."""
    place = str(described["OutputDataConfig"]["S3OutputPath"]).rstrip("/")
    return f"{place}/{described['TrainingJobName']}/output/output.tar.gz"


def kept_run(
    output: JobOutput, described: Mapping[str, Any], quality: Quality
) -> Mapping[str, Any]:
    """The run of a completed job.

    ``described`` is SageMaker's description of it. Raises InvalidEvidenceError for a run that the
    judge could not read: kept, it would make every later review fail.
    """
    job = str(described["TrainingJobName"])
    run = quality_run(output, job=job, quality=quality)
    job_output.check_run(described, run.wall_seconds, run.record)
    run = run.recorded_as(job_seconds=job_output.trained_seconds(described))
    kept = {key: value for key, value in run.record.items() if key not in NOT_KEPT}
    kept[METRIC_NAME] = quality.metric
    size = len(json.dumps(kept))
    if size > LARGEST_RUN:
        raise InvalidEvidenceError(
            f"its summary has {size} characters, and the ledger takes {LARGEST_RUN} of a run"
        )
    return kept
