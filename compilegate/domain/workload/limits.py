"""What SageMaker would refuse in a workload, and what its container toolkit would change.

``check_limits`` looks at one value at a time, by the service's own model; what only the whole
request shows, such as the number of hyperparameters with the trial's own, is checked when the
trial is planned. ``check_script_arguments`` refuses what would not reach the script unchanged. Only
new workload files and new trials are checked for that: what a deployment has stored keeps training.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sized
from typing import Any

from compilegate.domain.argument_text import (
    PREFIX,
    argument,
    encoded_document,
    entry_point_survives,
    for_launcher,
    name_survives,
    survives,
)
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import Reading
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.service_limits import Shapes, violations
from compilegate.domain.workload.model import BASELINE, Workload
from compilegate.domain.workload.names import METRIC_LINE, PARTITIONING
from compilegate.domain.workload.quality import LISTED, Metric

# Field of the workload file, the value, its shape in the model.
Limited = tuple[str, object, str]
# What the model's patterns allow, in words.
_CHARACTERS = {
    "ChannelName": "letters, digits and .-_",
    "TrainingEnvironmentKey": "letters, digits and _, with no digit at the beginning",
    "TagKey": "letters, digits, spaces and _.:/=+-@",
    "TagValue": "letters, digits, spaces and _.:/=+-@",
}

_SENT_AS = {"MetricRegex": "the expression that finds it in a log"}
_BEGINS_ENCODED = f'"{PREFIX}'
_ENCODED = "; a shell would change it, so it is sent encoded, which makes it a third longer"
_LAUNCHER_FIX = f"start the script with {LAUNCHER} (docs/training.md), which passes on any text"
# HyperParameterValue in the service's model.
MOST_CHARACTERS = 2500
# What sagemaker-pytorch-training sets before it starts a script, whatever the job asks for
# (``training.py``, releases 2.4.0 to 3.0.0); None stands for what only the running job has.
_SET_BY_TOOLKIT: Mapping[str, str | None] = {
    "MASTER_ADDR": None,
    "MASTER_PORT": "7777",
    "NCCL_SOCKET_IFNAME": None,
    "NCCL_IB_DISABLE": "1",
    "NCCL_DEBUG": "WARN",
}


def check_limits(workload: Workload, shapes: Shapes) -> None:
    """Raises InvalidInputError for every value that the service would refuse.

    ``shapes`` are those of facts/create_training_job.json.
    """
    reading, training = Reading(), workload.training
    counted: tuple[tuple[str, Sized, str], ...] = (
        ("training.inputs", training.inputs, "InputDataConfig"),
        ("training.instance_groups", training.instance_groups, "InstanceGroups"),
        ("training.environment", training.environment, "TrainingEnvironmentMap"),
        ("training.hyperparameters", training.hyperparameters, "HyperParameters"),
        ("tags", workload.tags, "TagList"),
    )
    for field, values, shape in counted:
        if len(values) > shapes[shape]["max"]:
            reading.errors.append(
                InvalidInputError(
                    f"has {len(values)} entries, and SageMaker takes {shapes[shape]['max']}",
                    field=field,
                    fix="leave some out",
                )
            )
    for field, value, shape in _limited(workload):
        broken = next(iter(violations(shapes, shape, value)), None)
        if broken:
            reading.errors.append(_refused(field, value, shape, broken.rule))
    reading.end()


def _refused(field: str, value: object, shape: str, rule: str) -> InvalidInputError:
    """People read which characters are allowed rather than the model's pattern."""
    allowed = _CHARACTERS.get(shape) if rule.startswith("must match") else None
    if allowed:
        problem = "has characters that SageMaker rejects"
        return InvalidInputError(problem, field=field, value=value, fix=f"use {allowed}")
    sent = _SENT_AS.get(shape, "it")
    return InvalidInputError(
        f"would be rejected by SageMaker: {sent} {rule}", field=field, value=value,
        fix=f"shorten it{_ENCODED if str(value).startswith(_BEGINS_ENCODED) else ''}",
    )  # fmt: skip


def _limited(workload: Workload) -> Iterator[Limited]:
    training = workload.training
    for channel, uri in training.inputs.items():
        yield f"training.inputs.{channel}", channel, "ChannelName"
        if "://" in uri:
            yield f"training.inputs.{channel}", uri, "S3Uri"
    for index, group in enumerate(training.instance_groups):
        yield f"training.instance_groups[{index}].name", group.name, "InstanceGroupName"
    yield from _entries("training.environment", training.environment, "TrainingEnvironment")
    yield from _hyperparameters("training", training.hyperparameters, training.entry_point)
    for index, candidate in enumerate(workload.candidates):
        entry_point = candidate.entry_point or training.entry_point
        values = candidate.hyperparameters
        yield from _hyperparameters(f"candidates[{index}]", values, entry_point)
    yield from _entries("tags", workload.tags, "Tag")
    if workload.owner is not None:
        yield "owner", workload.owner, "TagValue"
    metrics: dict[str, Metric] = {"quality": workload.quality}
    for listed in LISTED:
        every = enumerate(getattr(workload.quality, listed))
        metrics |= {f"quality.{listed}[{index}]": one for index, one in every}
    for place, one in metrics.items():
        yield f"{place}.metric", one.metric, "MetricName"
        yield f"{place}.metric", METRIC_LINE.format(re.escape(one.metric)), "MetricRegex"


def _hyperparameters(place: str, values: Mapping[str, Any], entry_point: str) -> Iterator[Limited]:
    for name, value in values.items():
        yield f"{place}.hyperparameters.{name}", name, "HyperParameterKey"
        # As a request has it; the toolkit decodes it again.
        text = json.dumps(for_launcher(value) if entry_point == LAUNCHER else value)
        yield f"{place}.hyperparameters.{name}", text, "HyperParameterValue"


def _entries(field: str, values: Mapping[str, str], shape: str) -> Iterator[Limited]:
    for name, value in values.items():
        yield f"{field}.{name}", name, f"{shape}Key"
        yield f"{field}.{name}", value, f"{shape}Value"


def check_script_arguments(workload: Workload) -> None:
    """Raises InvalidInputError for every value that would not reach a script unchanged."""
    Reading(list(_problems(workload))).end()


def _problems(workload: Workload) -> Iterator[InvalidInputError]:
    training = workload.training
    yield from _started(training.entry_point, "training")
    yield from _arguments(training.hyperparameters, training.entry_point, "training")
    yield from _environment(workload)
    yield from _combined(workload, "training", training.hyperparameters, training.entry_point)
    for index, candidate in enumerate(workload.candidates):
        place, own = f"candidates[{index}]", candidate.hyperparameters
        if candidate.entry_point is not None:
            yield from _started(candidate.entry_point, place)
            inherited = {k: v for k, v in training.hyperparameters.items() if k not in own}
            yield from _arguments(inherited, candidate.entry_point, "training")
        entry_point = candidate.entry_point or training.entry_point
        yield from _arguments(own, entry_point, place)
        yield from _combined(workload, place, own, entry_point)


def _started(entry_point: str, place: str) -> Iterator[InvalidInputError]:
    if not entry_point_survives(entry_point):
        yield InvalidInputError(
            "is a path that SageMaker's container toolkit does not start",
            field=f"{place}.entry_point",
            value=entry_point,
            fix="use letters, digits and ._+-/ only, without a leading - or ./",
        )


def _arguments(
    values: Mapping[str, Any], entry_point: str, place: str
) -> Iterator[InvalidInputError]:
    for name, value in values.items():
        field = f"{place}.hyperparameters.{name}"
        if not name_survives(name):
            yield InvalidInputError(
                "is a name that a shell in the training container would change",
                field=field,
                value=value,
                fix="use letters, digits and _@%+:,./- only",
            )
        elif "\0" in argument(value):
            yield InvalidInputError(
                "contains a null character, which arguments cannot", field=field, fix="remove it"
            )
        elif name == PARTITIONING:
            if not survives(json.loads(value)):
                instead = "use plain numbers, true, false and words without spaces"
                yield _changed(field, value, instead)
        elif entry_point != LAUNCHER and not survives(value):
            yield _changed(field, value, _LAUNCHER_FIX)
        elif entry_point == LAUNCHER and not survives(for_launcher(value)):
            yield _changed(field, value, "write it as text")


def _combined(
    workload: Workload, place: str, own: Mapping[str, Any], entry_point: str
) -> Iterator[InvalidInputError]:
    """A speed job carries all values of an arm in one hyperparameter (``request/build.py``).

    Counted with what every arm has; the few characters that some have more show in the plan.
    """
    training = workload.training
    values = {k: v for k, v in {**training.hyperparameters, **own}.items() if k != PARTITIONING}
    if entry_point == LAUNCHER:
        values = {name: for_launcher(value, shell=False) for name, value in values.items()}
    every = {"precision": training.precision, "batch_size": training.batch_size}
    every |= {"learning_rate": training.learning_rate, "arm": BASELINE, "compiler": "none"}
    text = encoded_document({"name": BASELINE, "hyperparameters": {**values, **every}})
    length = len(json.dumps(text))
    if length > MOST_CHARACTERS and values:
        longest = max(values, key=lambda name: len(str(values[name])))
        yield InvalidInputError(
            f"makes the arm's values {length} characters long as a speed job carries them, and "
            f"SageMaker takes {MOST_CHARACTERS}",
            field=f"{place if longest in own else 'training'}.hyperparameters.{longest}",
            value=values[longest],
            fix="shorten or leave out values, or let the script read them from a file",
        )


def _changed(field: str, value: Any, alternative: str) -> InvalidInputError:
    problem = (
        "is empty, and a shell in the training container would drop it"
        if argument(value) == ""
        else "has characters that a shell in the training container would change"
    )
    return InvalidInputError(
        problem,
        field=field,
        value=value,
        fix=f"use letters, digits and _@%+=:,./- only, or {alternative}",
    )


def _environment(workload: Workload) -> Iterator[InvalidInputError]:
    frameworks = [workload.framework, *(one.framework for one in workload.candidates)]
    if not any(one is not None and one.name.endswith("pytorch") for one in frameworks):
        return
    for name, value in workload.training.environment.items():
        if name in _SET_BY_TOOLKIT and value != _SET_BY_TOOLKIT[name]:
            yield InvalidInputError(
                "is set by SageMaker's container toolkit, so this value would never reach the "
                "script",
                field=f"training.environment.{name}",
                value=value,
                fix="remove it, and set it in the script if it must differ",
            )
