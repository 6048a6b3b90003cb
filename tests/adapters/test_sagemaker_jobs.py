"""Jobs by name, and the list: SageMaker matches names anywhere and filters what it has paged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from compilegate.adapters.sagemaker import SageMakerJobs
from compilegate.domain.errors import NotFoundError


class Listing:
    """ListTrainingJobs, two jobs a page before they are filtered."""

    def __init__(self, jobs: dict[str, str]) -> None:
        self.jobs = jobs

    def get_paginator(self, operation: str) -> Listing:
        assert "list_training_jobs" == operation
        return self

    def paginate(self, *, NameContains: str, **request: Any) -> Any:  # noqa: N803
        assert ("CreationTime", "Ascending") == (request["SortBy"], request["SortOrder"])
        assert {"PageSize": 100} == request["PaginationConfig"]
        assert datetime(2026, 11, 1, tzinfo=UTC) == request["CreationTimeAfter"]
        jobs = list(self.jobs.items())
        for first in range(0, len(jobs), 2):
            yield {"TrainingJobSummaries": [
                {"TrainingJobName": name, "TrainingJobStatus": status}
                for name, status in jobs[first : first + 2]
                if NameContains in name and request["StatusEquals"] == status
            ]}  # fmt: skip


JOBS = SageMakerJobs(
    Listing(
        {
            "cg-lm-1-s0-r0": "Completed",
            "old-cg-lm-1-s0-r0": "InProgress",
            "cg-lm-1-q1a17-r0": "InProgress",
            "cg-lm-12-q1b17-r0": "InProgress",
            "cg-lm-1-q1b17-r0": "Stopping",
        }
    )
)


def test_unfinished_jobs_are_those_that_begin_with_the_prefix() -> None:
    since = datetime(2026, 11, 1, tzinfo=UTC).timestamp()

    assert {
        "cg-lm-1-q1a17-r0": "InProgress", "cg-lm-1-q1b17-r0": "Stopping",
    } == JOBS.unfinished("cg-lm-1-", since)  # fmt: skip


def test_of_many_names_those_are_described_that_there_are() -> None:
    names = [f"cg-{number}" for number in range(20)]
    jobs = SageMakerJobs(OneJob("Completed"))

    assert ["nightly"] == list(jobs.describe_all([*names, "nightly"]))


def test_tags_are_read_by_key_whatever_the_page(aws: None) -> None:
    sagemaker = boto3.client("sagemaker")
    tags = {f"key-{number}": str(number) for number in range(49)}
    sagemaker.create_training_job(
        TrainingJobName="nightly",
        RoleArn="arn:aws:iam::123456789012:role/training",
        AlgorithmSpecification={"TrainingImage": "i", "TrainingInputMode": "File"},
        OutputDataConfig={"S3OutputPath": "s3://b/o"},
        ResourceConfig={"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )

    assert tags == SageMakerJobs(sagemaker).tags("nightly")


class OneJob:
    """One job and what it is asked; it refuses to stop, and others are not found."""

    def __init__(self, status: str) -> None:
        self.status, self.asked = status, []

    def describe_training_job(self, *, TrainingJobName: str) -> dict[str, str]:  # noqa: N803
        if TrainingJobName != "nightly":
            message = "Requested resource not found."
            error = {"Code": "ValidationException", "Message": message}
            raise ClientError({"Error": error}, "DescribeTrainingJob")
        return {"TrainingJobArn": "arn:nightly", "TrainingJobStatus": self.status}

    def stop_training_job(self, *, TrainingJobName: str) -> None:  # noqa: N803
        self.asked.append(TrainingJobName)
        raise ClientError({"Error": {"Code": "ValidationException"}}, "StopTrainingJob")

    def add_tags(self, **request: Any) -> None:
        self.asked.append(request)


def test_a_job_that_has_ended_needs_no_stop_and_one_that_is_gone_has_nothing() -> None:
    ended, running = OneJob("Completed"), OneJob("InProgress")

    SageMakerJobs(ended).stop("nightly")
    with pytest.raises(ClientError):
        SageMakerJobs(running).stop("nightly")
    SageMakerJobs(ended).tag("nightly", {"a": "1", "b": "2"})

    tags = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    assert ["nightly", {"ResourceArn": "arn:nightly", "Tags": tags}] == ended.asked
    assert ({}, {}) == (SageMakerJobs(ended).describe("gone"), SageMakerJobs(ended).tags("gone"))
    with pytest.raises(NotFoundError):
        SageMakerJobs(ended).tag("gone", {"a": "1"})
