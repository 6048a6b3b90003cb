"""What the cloud reports becomes a sentence a person can act on."""

from __future__ import annotations

import json

import pytest

from compilegate.domain.failures import REASON_MAX, explain, explain_job


def described(**fields: object) -> str:
    return json.dumps({"TrainingJobStatus": "Failed", "BillableTimeInSeconds": 42, **fields})


def test_a_crashed_script_is_the_arms_own_failure() -> None:
    failure = explain_job(
        described(FailureReason="AlgorithmError: CUDA out of memory, exit code: 1")
    )

    assert ("Failed", False, 42) == (
        failure.status,
        failure.infrastructure,
        failure.billable_seconds,
    )
    assert "CUDA out of memory" in failure.reason


@pytest.mark.parametrize(
    "reason",
    [
        "CapacityError: Unable to provision requested ML compute capacity",
        "InternalServerError: We encountered an internal error",
        "ClientError: Data download failed: No S3 objects found",
    ],
)
def test_what_the_cloud_could_not_provide_is_nobodys_result(reason: str) -> None:
    assert explain_job(described(FailureReason=reason)).infrastructure


def test_a_cause_that_cannot_be_read_is_not_held_against_the_arm() -> None:
    assert explain_job("gibberish").infrastructure
    assert explain_job("").infrastructure


def test_a_job_at_its_time_limit_says_which_setting_that_is() -> None:
    failure = explain_job(
        described(TrainingJobStatus="Stopped", SecondaryStatus="MaxRuntimeExceeded")
    )

    assert "Stopped" == failure.status
    assert "max_runtime_hours" in failure.reason


def test_a_spot_job_that_got_no_capacity_in_time_is_nobodys_result() -> None:
    failure = explain_job(
        described(TrainingJobStatus="Stopped", SecondaryStatus="MaxWaitTimeExceeded")
    )

    assert ("Stopped", True) == (failure.status, failure.infrastructure)
    assert "max_wait_hours" in failure.reason


@pytest.mark.parametrize(
    ("error", "cause", "advice"),
    [
        ("SageMaker.ResourceLimitExceededException", "ResourceLimitExceeded", "Service Quotas"),
        ("SageMaker.X", "Rate exceeded (Service: X)", "fewer trials"),
        ("SageMaker.AccessDeniedException", "AccessDenied: not allowed", "cdk diff"),
        ("States.Timeout", "", "longer than its limit"),
        ("ABORTED", "", "stopped by hand"),
    ],
)  # fmt: skip
def test_known_failures_say_what_to_do(error: str, cause: str, advice: str) -> None:
    assert advice in explain(error, cause)


def test_a_lambdas_error_message_is_taken_out_of_its_envelope() -> None:
    cause = json.dumps({"errorMessage": "training.batch_size: is missing", "stackTrace": ["…"]})

    assert "InvalidInputError: training.batch_size: is missing" == explain(
        "InvalidInputError", cause
    )


def test_a_reason_is_short_enough_to_be_recorded_and_keeps_its_end() -> None:
    reason = explain("E", "x" * 5000 + " the end")

    assert len(reason) <= REASON_MAX
    assert reason.endswith("the end")


def test_nothing_at_all_still_gives_a_reason() -> None:
    assert explain("", "")
