"""SageMaker training jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from compilegate.domain.errors import NotFoundError
from compilegate.domain.failures import IN_PROGRESS, STOPPING

PAGE_SIZE = 100  # the most that ListTrainingJobs gives at once


class SageMakerJobs:
    """TrainingJobs on SageMaker."""

    def __init__(self, sagemaker: Any) -> None:
        self._sagemaker = sagemaker

    def describe(self, job: str) -> Mapping[str, Any]:
        """DescribeTrainingJob; empty for a job that SageMaker never saw."""
        try:
            return self._described(job)
        except NotFoundError:
            return {}

    def tags(self, job: str) -> Mapping[str, str]:
        """A job's tags by key; empty for a job that is gone."""
        described = self.describe(job)
        if not described:
            return {}
        pages = self._sagemaker.get_paginator("list_tags").paginate(
            ResourceArn=described["TrainingJobArn"]
        )
        return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}

    def stop(self, job: str) -> None:
        """StopTrainingJob; a job that has already ended is left alone."""
        try:
            self._sagemaker.stop_training_job(TrainingJobName=job)
        except ClientError:
            if self._described(job)["TrainingJobStatus"] == IN_PROGRESS:
                raise

    def tag(self, job: str, tags: Mapping[str, str]) -> None:
        """Set tags of a job, those it has under other keys stay; raises NotFoundError."""
        self._sagemaker.add_tags(
            ResourceArn=self._described(job)["TrainingJobArn"],
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )

    def active(self, prefix: str) -> Sequence[str]:
        """Names of jobs in progress that begin with ``prefix``."""
        return list(self._list(prefix, StatusEquals=IN_PROGRESS))

    def unfinished(self, prefix: str) -> Mapping[str, str]:
        """TrainingJobStatus of jobs in progress or stopping that begin with ``prefix``."""
        # Stopping last: a job that goes over to it between the two calls is in one of them.
        return {
            **self._list(prefix, StatusEquals=IN_PROGRESS),
            **self._list(prefix, StatusEquals=STOPPING),
        }

    def statuses(self, prefix: str) -> Mapping[str, str]:
        """TrainingJobStatus of every job whose name begins with ``prefix``."""
        return self._list(prefix)

    def _described(self, job: str) -> Mapping[str, Any]:
        """DescribeTrainingJob; raises NotFoundError."""
        try:
            described: Mapping[str, Any] = self._sagemaker.describe_training_job(
                TrainingJobName=job
            )
        except ClientError as error:
            if "not found" in str(error).lower():
                raise NotFoundError(f"there is no training job {job}") from error
            raise
        return described

    def _list(self, prefix: str, **filters: str) -> dict[str, str]:
        pages = self._sagemaker.get_paginator("list_training_jobs").paginate(
            NameContains=prefix, PaginationConfig={"PageSize": PAGE_SIZE}, **filters
        )
        summaries = [job for page in pages for job in page["TrainingJobSummaries"]]
        return {
            job["TrainingJobName"]: job["TrainingJobStatus"]
            for job in summaries
            if job["TrainingJobName"].startswith(prefix)
        }
