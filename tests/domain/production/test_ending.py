"""Ends of a job that look alike and mean different things."""

from __future__ import annotations

import pytest

from compilegate.domain.failures import Ending, job_end

CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."


def described(status, secondary="", reason=""):
    return {
        "TrainingJobStatus": status, "SecondaryStatus": secondary or status,
        "FailureReason": reason,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("job", "error", "ending", "about_arm"),
    [
        (described("Completed"), "", Ending.COMPLETED, True),
        (described("Failed", reason="AlgorithmError: CUDA out of memory"), "", Ending.FAILED, True),
        (described("Failed", reason=CAPACITY), "", Ending.NO_CAPACITY, False),
        (described("Failed", reason="InternalServerError"), "", Ending.NO_CAPACITY, False),
        (
            described("Failed", reason="ClientError: Data download failed"),
            "", Ending.FAILED, False,
        ),
        (described("Stopped", "MaxRuntimeExceeded"), "", Ending.FAILED, True),
        (described("Stopped", "MaxWaitTimeExceeded"), "", Ending.NO_CAPACITY, False),
        (described("Stopped"), "", Ending.STOPPED, False),
        (described("Stopping"), "States.Timeout", Ending.FAILED, False),
        (None, "SageMaker.ResourceLimitExceededException", Ending.NO_CAPACITY, False),
        (None, "SageMaker.AmazonSageMakerException", Ending.REFUSED, False),
    ],
)  # fmt: skip
def test_what_became_of_a_job(job, error, ending, about_arm):
    found = job_end(job, error, "")

    assert (ending, about_arm) == (found.ending, found.about_arm)


def test_throttling_that_outlasts_the_retries_waits():
    found = job_end(None, "SageMaker.AmazonSageMakerException", "Rate exceeded (Service: …)")

    assert Ending.NO_CAPACITY is found.ending


def test_a_missing_quota_says_what_to_do():
    found = job_end(None, "SageMaker.ResourceLimitExceededException", "ResourceLimitExceeded")

    assert "Service Quotas" in found.reason
