"""Jobs by prefix: SageMaker matches names anywhere, a trial wants those that begin with its own."""

from __future__ import annotations

from typing import Any

from compilegate.adapters.sagemaker_jobs import SageMakerJobs


class Listing:
    """ListTrainingJobs, two jobs a page."""

    def __init__(self, jobs: dict[str, str]) -> None:
        self.jobs = jobs

    def get_paginator(self, operation: str) -> Listing:
        assert "list_training_jobs" == operation
        return self

    def paginate(self, *, NameContains: str, **request: Any) -> Any:  # noqa: N803
        wanted = request.get("StatusEquals")
        found = [
            {"TrainingJobName": name, "TrainingJobStatus": status}
            for name, status in self.jobs.items()
            if NameContains in name and wanted in (None, status)
        ]
        for first in range(0, len(found), 2):
            yield {"TrainingJobSummaries": found[first : first + 2]}


JOBS = SageMakerJobs(
    Listing(
        {
            "cg-lm-1-s0-r0": "Completed",
            "old-cg-lm-1-s0-r0": "InProgress",
            "cg-lm-1-q1a17-r0": "InProgress",
            "cg-lm-1-q1b17-r0": "Stopping",
            "cg-lm-12-q1b17-r0": "InProgress",
        }
    )
)


def test_statuses_are_of_every_job_that_begins_with_the_prefix() -> None:
    assert {
        "cg-lm-1-s0-r0": "Completed",
        "cg-lm-1-q1a17-r0": "InProgress",
        "cg-lm-1-q1b17-r0": "Stopping",
    } == JOBS.statuses("cg-lm-1-")


def test_active_ones_are_in_progress() -> None:
    assert ["cg-lm-1-q1a17-r0"] == JOBS.active("cg-lm-1-")
