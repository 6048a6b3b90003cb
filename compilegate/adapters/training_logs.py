"""The logs of training jobs: the lines that they print, and how long these are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code

# SageMaker makes it with the account's first training job, without a retention.
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# SageMaker names a job's streams JOB/algo-NODE-SECONDS.
_FIRST_MACHINE = "algo-1-"


class CloudJobWatch:
    """SageMaker's list of jobs and their CloudWatch logs."""

    def __init__(self, sagemaker: Any, logs: Any) -> None:
        self._sagemaker = sagemaker
        self._logs = logs
        self._streams: dict[str, str] = {}

    def names(self, prefix: str) -> Sequence[str]:
        """Every job whose name begins with ``prefix``, oldest first."""
        pages = self._sagemaker.get_paginator("list_training_jobs").paginate(
            NameContains=prefix, SortBy="CreationTime", SortOrder="Ascending"
        )
        job_names = [
            job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]
        ]
        return [name for name in job_names if name.startswith(prefix)]

    def lines(self, job: str, token: str | None) -> tuple[Sequence[str], str | None]:
        """Lines printed since ``token`` by the job's first machine, and the next token."""
        stream = self._streams.get(job) or self._find_stream(job)
        if stream is None:
            return (), token
        position = {"nextToken": token} if token else {}
        page = self._logs.get_log_events(
            logGroupName=LOG_GROUP, logStreamName=stream, startFromHead=True, **position
        )
        return [str(event["message"]) for event in page["events"]], page["nextForwardToken"]

    def _find_stream(self, job: str) -> str | None:
        """The stream of the job's first machine; what others made beside it came later."""
        pages = self._logs.get_paginator("describe_log_streams").paginate(
            logGroupName=LOG_GROUP, logStreamNamePrefix=f"{job}/{_FIRST_MACHINE}"
        )
        own = re.compile(rf"{re.escape(job)}/{_FIRST_MACHINE}[0-9]+")
        try:
            streams = [
                (stream["creationTime"], str(stream["logStreamName"]))
                for page in pages
                for stream in page["logStreams"]
                if own.fullmatch(str(stream["logStreamName"]))
            ]
        except ClientError as error:
            if error_code(error) == "ResourceNotFoundException":
                return None  # the group appears with the first job that ever prints
            raise
        if not streams:
            return None
        self._streams[job] = min(streams)[1]
        return self._streams[job]


class CloudWatchTrainingLogs:
    """The account's group of training logs; ``days`` is None where the deployment sets no limit."""

    def __init__(self, logs: Any, days: int | None) -> None:
        self._logs = logs
        self._days = days

    def limit_retention(self) -> bool:
        """Give the group a retention, unless it has one; returns whether it was set."""
        if self._days is None:
            return False
        groups = self._logs.describe_log_groups(logGroupNamePrefix=LOG_GROUP)["logGroups"]
        group = next((group for group in groups if group["logGroupName"] == LOG_GROUP), None)
        if group is None or "retentionInDays" in group:
            return False
        self._logs.put_retention_policy(logGroupName=LOG_GROUP, retentionInDays=self._days)
        return True
