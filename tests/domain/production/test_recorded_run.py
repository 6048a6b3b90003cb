"""How an attempt that the state machine no longer waits for is recorded, and what is stopped."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.failures import job_end
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.recorded_run import (
    NOT_RUN,
    AttemptOutcome,
    EndedAttempt,
    StillTrainsError,
    attempt_outcome,
    is_first_pause,
    next_attempt,
)
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from tests.domain.workload_builder import SOUND, change

NOW, JOB, TWIN = 1_790_000_000, "cg-bert-docs-r-p0-r1", "cg-bert-docs-r-p0-r0"
BEGUN = BegunRun(
    at=NOW - 10, run="r", execution="e", arm="compile", why="flag", seed=1, number=1,
    spec_key="s", source_key="s.tgz",
)  # fmt: skip
CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."


def outcome(
    status: str | None, error: str = "", *, reason: str = "", **changes: Any
) -> AttemptOutcome:
    """The outcome of an attempt whose job is described so, None for one that never was."""
    described = {"TrainingJobStatus": status, "FailureReason": reason} if status else {}
    values: dict[str, Any] = {
        "workload": SOUND, "begun": BEGUN, "attempt": Attempt(), "job": JOB, "now": NOW,
        "described": described, "end": job_end(described, error, ""), "error": error, **changes,
    }  # fmt: skip
    return attempt_outcome(EndedAttempt(**values))


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped", "Stopping", None])
def test_a_job_that_is_not_in_progress_is_recorded_and_only_its_twins_are_stopped(
    status: str | None,
) -> None:
    recorded = outcome(status, "SageMaker.AmazonSageMakerException", twins=(TWIN,))

    assert isinstance(recorded.record, ProductionRun)
    assert (JOB, (TWIN,)) == (recorded.record.job, recorded.stop)


def test_a_job_in_progress_is_not_recorded() -> None:
    with pytest.raises(StillTrainsError, match=f"{JOB} is still training"):
        outcome("InProgress", "SageMaker.AmazonSageMakerException")


def test_a_job_in_progress_after_its_time_is_stopped_with_its_twins_and_recorded() -> None:
    recorded = outcome("InProgress", "States.Timeout", twins=(TWIN,))

    assert isinstance(recorded.record, ProductionRun)
    assert (False, (JOB, TWIN)) == (recorded.record.counts, recorded.stop)


def test_a_job_without_capacity_waits_as_long_as_the_first_wait_is() -> None:
    recorded = outcome("Failed", reason=CAPACITY, first_wait_seconds=7.0)

    assert isinstance(recorded.record, CapacityWait)
    assert (7, JOB, ()) == (recorded.record.wait_seconds, recorded.record.job, recorded.stop)


def test_a_fallback_instance_type_is_tried_without_a_pause() -> None:
    recorded = outcome("Failed", reason=CAPACITY, fallbacks=("ml.g5.2xlarge",))

    assert isinstance(recorded.record, CapacityWait)
    assert (0, "ml.g5.2xlarge") == (
        recorded.record.wait_seconds,
        recorded.record.next_instance_type,
    )


def test_a_run_that_may_not_wait_is_recorded_as_not_run() -> None:
    workload = change(SOUND, schedule__max_wait_hours=0.0)
    recorded = outcome("Failed", reason=CAPACITY, workload=workload)

    assert isinstance(recorded.record, ProductionRun)
    assert (NOT_RUN, False) == (recorded.record.status, recorded.record.counts)
    assert str(recorded.record.reason).startswith("gave up waiting for machines: ")


def test_after_a_wait_the_same_arm_is_tried_again_on_the_type_that_the_wait_names() -> None:
    wait = outcome("Failed", reason=CAPACITY, fallbacks=("ml.g5.2xlarge",)).record

    assert Attempt(3, rerun=True, instance_type="ml.g5.2xlarge") == next_attempt(
        Attempt(2, rerun=True), wait
    )


def test_a_candidate_that_failed_is_followed_by_a_rerun_and_no_other_run_by_anything() -> None:
    failed, completed = (outcome(status).record for status in ("Failed", "Completed"))

    assert Attempt(1, rerun=True) == next_attempt(Attempt(), failed)
    assert Attempt() == next_attempt(Attempt(), completed)


def test_the_first_pause_is_reported_and_no_fallback_or_later_pause() -> None:
    pause = outcome("Failed", reason=CAPACITY).record
    fallback = outcome("Failed", reason=CAPACITY, fallbacks=("ml.g5.2xlarge",)).record

    assert isinstance(pause, CapacityWait)
    assert isinstance(fallback, CapacityWait)
    assert is_first_pause(pause, [])
    assert is_first_pause(pause, [fallback])
    assert not is_first_pause(pause, [pause, fallback])
    assert not is_first_pause(fallback, [])
