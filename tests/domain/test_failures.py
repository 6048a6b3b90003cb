"""What the cloud reports becomes a sentence a person can act on."""

from __future__ import annotations

import json

import pytest

from compilegate.domain.errors import REASON_MAX
from compilegate.domain.failures import Ending, explain, explain_job, job_end

# What SageMaker could not do as it was asked to, before any script ran.
REQUESTS = (
    "ClientError: Data download failed: No S3 objects found",
    "ClientError: NoSuchBucket: The specified bucket does not exist",
    "ClientError: AccessDenied when accessing S3 for the artifacts",
    "ClientError: KMS key is disabled",
    "ClientError: VPC subnet has no free addresses",
    "ClientError: Cannot pull the training image",
)


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
        "An error occurred (ThrottlingException) when calling the AssumeRole operation: Rate",
        *REQUESTS,
    ],
)
def test_what_the_cloud_could_not_provide_is_not_a_result(reason: str) -> None:
    failure = explain_job(described(FailureReason=reason))

    assert (True, reason not in REQUESTS) == (failure.infrastructure, failure.no_capacity)


@pytest.mark.parametrize(
    "printed",
    [
        "ExecuteUserScriptError:\nbotocore.exceptions.ClientError: An error occurred "
        "(ThrottlingException) when calling the GetParameter operation: Rate exceeded",
        "ExecuteUserScriptError:\nopenai.InternalServerError: 500",
        "CapacityError in buffer",
        "ClientError: Data download failed",
        "ResourceLimitExceeded " + "x" * 1000,
    ],
)
def test_what_a_script_has_printed_does_not_make_its_crash_the_clouds(printed: str) -> None:
    failure = explain_job(described(FailureReason=f"AlgorithmError: {printed}, exit code: 1"))

    assert (False, False) == (failure.infrastructure, failure.no_capacity)


@pytest.mark.parametrize(
    "reason",
    [
        "ClientError: Please use an instance type with more memory, or reduce the size of data",
        "ClientError: Unable to read the training data, exit code: 2",
    ],
)
def test_what_the_job_itself_has_used_up_or_ended_with_is_its_own_failure(reason: str) -> None:
    assert not explain_job(described(FailureReason=reason)).infrastructure


def test_a_cause_that_cannot_be_read_is_not_held_against_the_arm() -> None:
    assert explain_job("gibberish").infrastructure
    assert explain_job("").infrastructure


def test_a_job_at_its_time_limit_says_which_setting_that_is() -> None:
    failure = explain_job(
        described(TrainingJobStatus="Stopped", SecondaryStatus="MaxRuntimeExceeded")
    )

    assert "Stopped" == failure.status
    assert "max_runtime_hours" in failure.reason


def test_a_spot_job_that_got_no_capacity_in_time_is_not_a_result() -> None:
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
        ("States.Timeout", "", "try again"),
        ("TIMED_OUT", "", "start it again"),
        ("Sandbox.Timedout", "Task timed out after 60 seconds", "try again"),
        ("ClientError", "An error occurred (SlowDown) when calling GetObject", "try again"),
        ("ReadTimeoutError", "Read timeout on endpoint URL", "try again"),
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


def test_a_cause_that_nests_too_deeply_is_read_as_text() -> None:
    nested = "[" * 100_000

    assert explain("States.TaskFailed", nested).endswith("[[[")
    assert explain_job(nested).infrastructure


def test_nothing_at_all_still_gives_a_reason() -> None:
    assert explain("", "")


def test_a_reason_without_a_known_error_begins_with_the_reason() -> None:
    assert "InternalServerError: try again" == explain("", "InternalServerError: try again")


CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."


def description(status: str, secondary: str = "", reason: str = "") -> dict[str, str]:
    return {
        "TrainingJobStatus": status, "SecondaryStatus": secondary or status,
        "FailureReason": reason,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("job", "error", "ending", "about_arm"),
    [
        (description("Completed"), "", Ending.COMPLETED, True),
        (description("Failed", reason="AlgorithmError: CUDA"), "", Ending.FAILED, True),
        (description("Failed", reason=CAPACITY), "", Ending.NO_CAPACITY, False),
        (description("Failed", reason="InternalServerError"), "", Ending.NO_CAPACITY, False),
        (
            description("Failed", reason="ClientError: Data download failed"),
            "", Ending.FAILED, False,
        ),
        (description("Stopped", "MaxRuntimeExceeded"), "", Ending.FAILED, True),
        (description("Stopped", "MaxWaitTimeExceeded"), "", Ending.NO_CAPACITY, False),
        (description("Stopped"), "", Ending.STOPPED, False),
        (description("Stopping"), "States.Timeout", Ending.FAILED, False),
        ({}, "SageMaker.ResourceLimitExceededException", Ending.NO_CAPACITY, False),
        ({}, "SageMaker.AmazonSageMakerException", Ending.REFUSED, False),
        ({}, "Rate exceeded (Service: …)", Ending.NO_CAPACITY, False),
    ],
)  # fmt: skip
def test_a_job_ends_in_one_way_that_is_about_its_arm_or_not(
    job: dict[str, str], error: str, ending: Ending, *, about_arm: bool
) -> None:
    end = job_end(job, error, "")

    assert (ending, about_arm) == (end.ending, end.about_arm)
