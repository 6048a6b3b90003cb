"""How an attempt that the state machine no longer waits for is recorded, and what is stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.production.attempts import FIRST_SECONDS, NO_ATTEMPT, Attempt, AttemptEnd
from compilegate.domain.production.job import RunJobs
from compilegate.domain.production.job_evidence import LARGEST_RUN
from compilegate.domain.production.recorded_run import (
    NOT_RUN,
    AttemptOutcome,
    EndedAttempt,
    StillTrainsError,
    attempt_answer,
    attempt_outcome,
    notifies_owner,
)
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import BegunRun, CapacityWait, ProductionRun
from compilegate.domain.request.build import JobSite
from compilegate.domain.workload.model import Workload
from compilegate.facts import load_facts
from compilegate.usecases.job_requests import request_limits
from tests.domain.workload_builder import SOUND, change

NOW, JOB, DUPLICATE = 1_790_000_000, "cg-bert-docs-r-p0-r1", "cg-bert-docs-r-p0-r0"
BEGUN = BegunRun(
    at=NOW - 10, run="r", execution="e", arm="compile", why="flag", seed=1, number=1,
    spec_key="s", source_key="s.tgz",
)  # fmt: skip
SITE = JobSite("prod", "data", "us-east-1", "arn:aws:iam::123456789012:role/compilegate-")
ELSEWHERE = change(SOUND, training__fallback_instances=("ml.g5.2xlarge",))
CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."


def ended(
    status: str | None = None, error: str = "", *, reason: str = "", workload: Workload = SOUND,
    first_wait: float = FIRST_SECONDS, begun: BegunRun = BEGUN, attempt: Attempt = NO_ATTEMPT,
    **more: Any,
) -> EndedAttempt:  # fmt: skip
    """An attempt whose job is described so, None for one that never was."""
    described = {"TrainingJobStatus": status, "FailureReason": reason} if status else {}
    reported = AttemptEnd(SOUND.name, "r", JOB, attempt, error, first_wait_seconds=first_wait)
    jobs = RunJobs(TrainedJob(workload, "code"), load_facts(), SITE, request_limits())
    return EndedAttempt(reported, begun, jobs, described, NOW, **more)


def outcome(status: str | None, error: str = "", **more: Any) -> AttemptOutcome:
    """Its outcome."""
    return attempt_outcome(ended(status, error, **more))


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped", "Stopping", None])
def test_a_job_that_is_not_in_progress_is_recorded_and_only_its_twins_are_stopped(
    status: str | None,
) -> None:
    recorded = outcome(status, "SageMaker.AmazonSageMakerException", same_prefix=(JOB, DUPLICATE))

    assert isinstance(recorded.record, ProductionRun)
    assert (JOB, (DUPLICATE,)) == (recorded.record.job, recorded.stop)


def test_a_job_in_progress_is_not_recorded() -> None:
    with pytest.raises(StillTrainsError, match=f"{JOB} is still training"):
        outcome("InProgress", "SageMaker.AmazonSageMakerException")


def test_a_job_in_progress_after_its_time_is_stopped_with_its_twins_and_recorded() -> None:
    recorded = outcome("InProgress", "States.Timeout", same_prefix=(JOB, DUPLICATE))

    assert isinstance(recorded.record, ProductionRun)
    assert (False, (JOB, DUPLICATE)) == (recorded.record.counts, recorded.stop)


def test_a_job_without_capacity_waits_as_long_as_the_first_wait_is() -> None:
    recorded = outcome("Failed", reason=CAPACITY, first_wait=7.0)

    assert isinstance(recorded.record, CapacityWait)
    assert (7, JOB, ()) == (recorded.record.wait_seconds, recorded.record.job, recorded.stop)


def test_a_fallback_instance_type_is_tried_without_a_pause() -> None:
    recorded = outcome("Failed", reason=CAPACITY, workload=ELSEWHERE)

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
    wait = outcome("Failed", reason=CAPACITY, workload=ELSEWHERE).record

    again = ended(attempt=Attempt(2, rerun=True))
    assert Attempt(3, rerun=True, instance_type="ml.g5.2xlarge") == (
        attempt_answer(wait, again).attempt
    )


def test_a_candidate_that_failed_is_followed_by_a_rerun_and_no_other_run_by_anything() -> None:
    failed, completed = (outcome(status).record for status in ("Failed", "Completed"))

    assert Attempt(1, rerun=True) == attempt_answer(failed, ended()).attempt
    assert Attempt() == attempt_answer(completed, ended()).attempt


def test_the_first_pause_is_reported_and_no_fallback_or_later_pause() -> None:
    pause = outcome("Failed", reason=CAPACITY).record
    fallback = outcome("Failed", reason=CAPACITY, workload=ELSEWHERE).record

    assert isinstance(pause, CapacityWait)
    assert isinstance(fallback, CapacityWait)
    paused, tried = (attempt_answer(record, ended()) for record in (pause, fallback))
    assert notifies_owner(paused, ())
    assert notifies_owner(paused, (fallback,))
    assert not notifies_owner(paused, (pause, fallback))
    assert not notifies_owner(tried, ())


def test_of_the_runs_only_one_that_leaves_no_model_is_reported() -> None:
    baseline = replace(BEGUN, arm="baseline")
    failed, repeated, completed = (
        outcome(status, begun=begun).record
        for status, begun in (("Failed", baseline), ("Failed", BEGUN), ("Completed", baseline))
    )

    assert [True, False, False] == [
        notifies_owner(attempt_answer(record, ended()), ())
        for record in (failed, repeated, completed)
    ]


def test_the_figures_that_these_tests_go_by() -> None:
    assert 100_000 == LARGEST_RUN
    assert 300 == FIRST_SECONDS
