"""Training jobs as SageMaker describes them, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from compilegate_discover.job import Job, Reader

NOW = datetime(2026, 11, 26, 20, 0, tzinfo=UTC)
REGION = "us-east-1"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"
ROLE = "arn:aws:iam::123456789012:role/training"


def record(name: str, days_ago: float, **changes: Any) -> dict[str, Any]:
    """A completed hour of a script on one GPU; ``changes`` are fields, or parts of them."""
    begun = NOW - timedelta(days=days_ago)
    hyperparameters = {"sagemaker_program": '"train.py"', "epochs": "3"}
    made: dict[str, Any] = {
        "TrainingJobName": name, "TrainingJobStatus": "Completed", "CreationTime": begun,
        "TrainingStartTime": begun + timedelta(minutes=3),
        "TrainingEndTime": begun + timedelta(minutes=63),
        "TrainingTimeInSeconds": 3600, "BillableTimeInSeconds": 3600,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "HyperParameters": hyperparameters | changes.pop("settings", {}), "RoleArn": ROLE,
        "ResourceConfig": {
            "InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 50,
            **changes.pop("resources", {}),
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        "InputDataConfig": channels(changes.pop("data", "s3://data/docs/train/")),
        "Tags": [{"Key": key, "Value": value} for key, value in changes.pop("tags", {}).items()],
    }  # fmt: skip
    program = changes.pop("program", None)
    if program is not None:
        made["HyperParameters"]["sagemaker_program"] = program
    return made | changes


def channels(uri: str, name: str = "train") -> list[dict[str, Any]]:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri}
    return [{"ChannelName": name, "DataSource": {"S3DataSource": source}}] if uri else []


def read(*records: Mapping[str, Any], region: str = REGION) -> list[Job]:
    reader = Reader(region)
    return [job for one in records if (job := reader.job(one))]


def daily(names: Sequence[str], **changes: Any) -> list[dict[str, Any]]:
    """A job each day with these names, the last one yesterday."""
    return [
        record(name, len(names) - day, **{key: _copied(value) for key, value in changes.items()})
        for day, name in enumerate(names)
    ]


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value
