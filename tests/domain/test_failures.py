"""What the cloud reports becomes a sentence a person can act on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain.failures import Ending, explain, explain_job, job_end
from compilegate.domain.outside import REASON_MAX

NESTED = "[" * 100_000
CAPACITY = "CapacityError: Unable to provision requested ML compute capacity"
CRASHED = "AlgorithmError: {}, exit code: 1"


def description(status: str = "Failed", secondary: str = "", reason: str = "") -> dict[str, Any]:
    return {
        "TrainingJobStatus": status, "SecondaryStatus": secondary or status,
        "FailureReason": reason, "BillableTimeInSeconds": 42,
    }  # fmt: skip


# Reason; whether the cloud's doing, and of that whether more time may put it right.
REASONS = [
    (CAPACITY, True, True),
    ("InternalServerError: We encountered an internal error", True, True),
    ("An error occurred (ThrottlingException) when calling the AssumeRole operation: Rate",
     True, True),
    # What SageMaker could not do as it was asked to, before any script ran.
    *((f"ClientError: {what}", True, False) for what in (
        "Data download failed: No S3 objects found", "NoSuchBucket: The bucket does not exist",
        "AccessDenied when accessing S3 for the artifacts", "KMS key is disabled",
        "VPC subnet has no free addresses", "Cannot pull the training image",
    )),
    # What the job itself has used up or ended with.
    ("ClientError: Please use an instance type with more memory, or reduce the size of data",
     False, False),
    ("ClientError: Unable to read the training data, exit code: 2", False, False),
    # What a script has printed does not make its crash the cloud's.
    *((CRASHED.format(printed), False, False) for printed in (
        "CUDA out of memory", "CapacityError in buffer", "ClientError: Data download failed",
        "ExecuteUserScriptError:\nbotocore.exceptions.ClientError: An error occurred "
        "(ThrottlingException) when calling the GetParameter operation: Rate exceeded",
        "ExecuteUserScriptError:\nopenai.InternalServerError: 500",
        "ResourceLimitExceeded " + "x" * 1000,
    )),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "infrastructure", "no_capacity"), REASONS)
def test_a_failure_is_the_arms_own_or_the_clouds(reason, *, infrastructure, no_capacity):
    failure = explain_job(json.dumps(description(reason=reason)))

    assert (infrastructure, no_capacity) == (failure.infrastructure, failure.no_capacity)
    assert ("Failed", 42, False) == (failure.status, failure.billable_seconds, failure.timed_out)
    assert " ".join(reason.split())[-40:] in failure.reason


@pytest.mark.parametrize("cause", ["gibberish", "", NESTED])
def test_a_cause_that_cannot_be_read_is_not_held_against_the_arm(cause):
    failure = explain_job(cause)

    assert (True, None) == (failure.infrastructure, failure.billable_seconds)
    assert failure.reason


@pytest.mark.parametrize(
    ("secondary", "infrastructure", "timed_out", "setting"),
    [("MaxRuntimeExceeded", False, True, "max_runtime_hours"),
     ("MaxWaitTimeExceeded", True, False, "max_wait_hours"), ("", False, False, "stopped")],
)  # fmt: skip
def test_a_stopped_job_says_which_setting_stopped_it(
    secondary, setting, *, infrastructure, timed_out
):
    failure = explain_job(json.dumps(description("Stopped", secondary)))

    assert ("Stopped", infrastructure, timed_out) == (
        failure.status, failure.infrastructure, failure.timed_out,
    )  # fmt: skip
    assert setting in failure.reason


@pytest.mark.parametrize(
    ("error", "cause", "advice"),
    [
        ("SageMaker.ResourceLimitExceededException", "ResourceLimitExceeded", "Service Quotas"),
        ("SageMaker.X", "Rate exceeded (Service: X)", "fewer trials"),
        ("TIMED_OUT", "", "start it again"),
        ("Sandbox.Timedout", "Task timed out after 60 seconds", "try again"),
        # A Lambda's message is taken out of its envelope.
        ("InvalidInputError", json.dumps({"errorMessage": "a: is missing", "stackTrace": ["…"]}),
         "InvalidInputError: a: is missing"),
        ("", "InternalServerError: try again", "InternalServerError: try again"),
        ("States.TaskFailed", NESTED, "[[["),
        ("E", "x" * 5000 + " the end", "the end"),
        ("", "", "no reason"),
    ],
)  # fmt: skip
def test_an_explanation_ends_with_what_helps_or_what_was_said(error, cause, advice):
    text = explain(error, cause)

    assert advice in text
    assert len(text) <= REASON_MAX


@pytest.mark.parametrize(
    ("job", "error", "ending", "about_arm"),
    [
        (description("Completed"), "", Ending.COMPLETED, True),
        (description(reason="AlgorithmError: CUDA"), "", Ending.FAILED, True),
        (description(reason=CAPACITY), "", Ending.NO_CAPACITY, False),
        (description(reason="InternalServerError"), "", Ending.NO_CAPACITY, False),
        (description(reason="ClientError: Data download failed"), "", Ending.FAILED, False),
        (description("Stopped", "MaxRuntimeExceeded"), "", Ending.FAILED, True),
        (description("Stopped", "MaxWaitTimeExceeded"), "", Ending.NO_CAPACITY, False),
        (description("Stopped"), "", Ending.STOPPED, False),
        (description("Stopping"), "States.Timeout", Ending.FAILED, False),
        ({}, "SageMaker.ResourceLimitExceededException", Ending.NO_CAPACITY, False),
        ({}, "SageMaker.AmazonSageMakerException", Ending.REFUSED, False),
        ({}, "Rate exceeded (Service: …)", Ending.NO_CAPACITY, False),
    ],
)  # fmt: skip
def test_a_job_ends_in_one_way_that_is_about_its_arm_or_not(job, error, ending, *, about_arm):
    end = job_end(job, error, "")

    assert (ending, about_arm) == (end.ending, end.about_arm)
    assert (end.reason is None) == (ending is Ending.COMPLETED)
