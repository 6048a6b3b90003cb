"""How long the logs of training jobs are kept."""

from __future__ import annotations

from typing import Any

# SageMaker makes it with the account's first training job, without a retention.
GROUP = "/aws/sagemaker/TrainingJobs"


class CloudWatchTrainingLogs:
    """The account's group of training logs; ``days`` is None where the deployment sets no limit."""

    def __init__(self, logs: Any, days: int | None) -> None:
        self._logs = logs
        self._days = days

    def limit_retention(self) -> bool:
        """Give the group a retention, unless it has one; returns whether it was set."""
        if self._days is None:
            return False
        groups = self._logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"]
        group = next((group for group in groups if group["logGroupName"] == GROUP), None)
        if group is None or "retentionInDays" in group:
            return False
        self._logs.put_retention_policy(logGroupName=GROUP, retentionInDays=self._days)
        return True
