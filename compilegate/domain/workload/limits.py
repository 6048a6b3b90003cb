"""What SageMaker's own model of a training job forbids in a workload, one value at a time.

What only the whole request shows, such as the number of hyperparameters with the trial's own,
is checked when the trial is planned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sized
from typing import Any

from compilegate.domain.argument_text import PREFIX, for_launcher
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.service_limits import Shapes, violations
from compilegate.domain.workload.model import Training, Workload

# Field of the workload file, the value, its shape in the model.
Limited = tuple[str, object, str]
# What the model's patterns allow, in words.
_CHARACTERS = {
    "ChannelName": "letters, digits and .-_",
    "TrainingEnvironmentKey": "letters, digits and _, with no digit at the beginning",
    "TagKey": "letters, digits, spaces and _.:/=+-@",
    "TagValue": "letters, digits, spaces and _.:/=+-@",
}

_BEGINS_ENCODED = f'"{PREFIX}'
_ENCODED = "; a shell would change it, so it travels encoded, a third longer than it is written"


def check_limits(workload: Workload, shapes: Shapes) -> None:
    """Raises InvalidInputError for the first value that the service would refuse.

    ``shapes`` are those of facts/create_training_job.json.
    """
    for field, values, shape in _counted(workload):
        if len(values) > shapes[shape]["max"]:
            raise InvalidInputError(
                f"has {len(values)} entries, and SageMaker takes {shapes[shape]['max']}",
                field=field,
                fix="leave some out",
            )
    for field, value, shape in _limited(workload):
        for violation in violations(shapes, shape, value):
            raise _refused(field, value, shape, violation.rule)


def _refused(field: str, value: object, shape: str, rule: str) -> InvalidInputError:
    """People read which characters are allowed rather than the model's pattern."""
    allowed = _CHARACTERS.get(shape) if rule.startswith("must match") else None
    if allowed:
        problem = "has characters that SageMaker refuses"
        return InvalidInputError(problem, field=field, value=value, fix=f"use {allowed}")
    return InvalidInputError(
        f"would be refused by SageMaker: it {rule}", field=field, value=value,
        fix=f"shorten it{_ENCODED if str(value).startswith(_BEGINS_ENCODED) else ''}",
    )  # fmt: skip


def _counted(workload: Workload) -> Iterator[tuple[str, Sized, str]]:
    training = workload.training
    yield "training.inputs", training.inputs, "InputDataConfig"
    yield "training.instance_groups", training.instance_groups, "InstanceGroups"
    yield "training.environment", training.environment, "TrainingEnvironmentMap"
    yield "training.hyperparameters", training.hyperparameters, "HyperParameters"
    yield "tags", workload.tags, "TagList"


def _limited(workload: Workload) -> Iterator[Limited]:
    training = workload.training
    yield from _inputs(training)
    for index, group in enumerate(training.instance_groups):
        yield f"training.instance_groups[{index}].name", group.name, "InstanceGroupName"
    yield from _mapping("training.environment", training.environment, "TrainingEnvironment")
    yield from _hyperparameters("training", training.hyperparameters, training.entry_point)
    for index, candidate in enumerate(workload.candidates):
        entry_point = candidate.entry_point or training.entry_point
        values = candidate.hyperparameters or {}
        yield from _hyperparameters(f"candidates[{index}]", values, entry_point)
    yield from _mapping("tags", workload.tags, "Tag")
    if workload.owner is not None:
        yield "owner", workload.owner, "TagValue"
    yield "quality.metric", workload.quality.metric, "MetricName"


def _inputs(training: Training) -> Iterator[Limited]:
    for channel, uri in training.inputs.items():
        yield f"training.inputs.{channel}", channel, "ChannelName"
        if "://" in uri:
            yield f"training.inputs.{channel}", uri, "S3Uri"


def _hyperparameters(place: str, values: Mapping[str, Any], entry_point: str) -> Iterator[Limited]:
    for name, value in values.items():
        yield f"{place}.hyperparameters.{name}", name, "HyperParameterKey"
        # As a request has it; the toolkit decodes it again.
        carried = for_launcher(value) if entry_point == LAUNCHER else value
        yield f"{place}.hyperparameters.{name}", json.dumps(carried), "HyperParameterValue"


def _mapping(field: str, values: Mapping[str, str], shape: str) -> Iterator[Limited]:
    for name, value in values.items():
        yield f"{field}.{name}", name, f"{shape}Key"
        yield f"{field}.{name}", value, f"{shape}Value"
