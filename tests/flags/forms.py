"""One job in each form that a team may write it in, and where its parts are found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from compilegate.flags import estimator_arguments, model_trainer_arguments, training_job_request

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:2"
FRAMEWORK = {"name": "pytorch", "version": "2.8.0"}
ESTIMATOR = {
    "entry_point": "train.py", "source_dir": "src", "role": "r", "instance_type": "ml.g5.2xlarge",
    "instance_count": 1, "max_run": 3600, "hyperparameters": {"epochs": 3, "batch_size": 32},
    "tags": [{"Key": "team", "Value": "nlp"}], "environment": {"A": "1"},
}  # fmt: skip
TRAINER = {
    "training_image": "own:1", "compute": {"instance_type": "ml.g5.2xlarge", "volume": 30},
    "source_code": {"source_dir": "src", "entry_script": "train.py"},
    "hyperparameters": {"epochs": 3, "batch_size": 32}, "environment": {"A": "1"},
    "tags": [{"key": "team", "value": "nlp"}],
}  # fmt: skip
REQUEST = {
    "TrainingJobName": "nightly-1",
    "AlgorithmSpecification": {"TrainingImage": "own:1", "TrainingInputMode": "File"},
    "HyperParameters": {
        "epochs": "3", "batch_size": "32", "sagemaker_program": '"train.py"',
        "sagemaker_instance_type": '"ml.g5.2xlarge"',
    },
    "ResourceConfig": {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "Environment": {"A": "1"}, "Tags": [{"Key": "team", "Value": "nlp"}],
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One way to write the same job down, and where its parts are found in it."""

    job: dict[str, Any]
    carry: Callable[..., dict[str, Any]]

    def asked(self, client: Any, *, name: str = "bert-docs", **changes: Any) -> dict[str, Any]:
        return self.carry(name, client=client, **{**self.job, **changes})

    def hyperparameters(self, job: dict[str, Any]) -> dict[str, Any]:
        values = job.get("hyperparameters", job.get("HyperParameters"))
        return {key: _value(value) for key, value in values.items()}

    def tagged(self, tags: dict[str, str]) -> dict[str, Any]:
        """The field of a job that holds these tags."""
        ((field, key, value),) = (
            (field, *self.job[field][0]) for field in ("tags", "Tags") if field in self.job
        )
        return {field: [{key: name, value: text} for name, text in tags.items()]}

    def tags(self, job: dict[str, Any]) -> dict[str, str]:
        """Its tags, each written as its form does and once."""
        (field,) = self.tagged({})
        key, value = self.job[field][0]
        tags = [(tag[key], tag[value]) for tag in job[field]]
        assert len(dict(tags)) == len(tags)
        return dict(tags)

    def variables(self, job: dict[str, Any]) -> dict[str, str]:
        result: dict[str, str] = job.get("environment", job.get("Environment"))
        return result

    def without_marks(self, job: dict[str, Any]) -> dict[str, Any]:
        marks = ("tags", "Tags", "environment", "Environment")
        return {key: value for key, value in job.items() if key not in marks}


def _value(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def _request(name: str, *, client: Any, names: Any = None, **job: Any) -> dict[str, Any]:
    return training_job_request(name, job, client=client, names=names)


FORMS = {
    "sdk v2": Form(ESTIMATOR, estimator_arguments),
    "sdk v3": Form(TRAINER, model_trainer_arguments),
    "request": Form(REQUEST, _request),
}


def warned(caplog: pytest.LogCaptureFixture) -> str:
    """What our package has logged."""
    return "\n".join(
        record.getMessage() for record in caplog.records if record.name == "compilegate.flags"
    )
