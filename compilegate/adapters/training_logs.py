"""How long the logs of training jobs are kept."""

from __future__ import annotations

from typing import Any

# SageMaker makes it with the account's first training job, without a retention.
GROUP = "/aws/sagemaker/TrainingJobs"


def limit_retention(logs: Any, days: int) -> bool:
    """Give the group of all training jobs of the account a retention, unless it has one.

    Returns whether it was set.
    """
    found = logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"]
    group = next((group for group in found if group["logGroupName"] == GROUP), None)
    if group is None or "retentionInDays" in group:
        return False
    logs.put_retention_policy(logGroupName=GROUP, retentionInDays=days)
    return True
