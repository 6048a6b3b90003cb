"""Refuses what SageMaker's container toolkit would change on its way to the script.

Only new workload files and new trials are checked: what a deployment has stored keeps training.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.argument_text import (
    argument,
    encoded_document,
    entry_point_survives,
    for_launcher,
    name_survives,
    survives,
)
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.workload.model import BASELINE, Workload
from compilegate.domain.workload.names import PARTITIONING

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


def check_script_arguments(workload: Workload) -> None:
    """Raises InvalidInputError for the first value that would not reach a script unchanged."""
    for problem in _problems(workload):
        raise problem


def _problems(workload: Workload) -> Iterator[InvalidInputError]:
    training = workload.training
    yield from _started(training.entry_point, "training")
    yield from _arguments(training.hyperparameters, training.entry_point, "training")
    yield from _environment(workload)
    yield from _carried(workload, "training", training.hyperparameters, training.entry_point)
    for index, candidate in enumerate(workload.candidates):
        place, own = f"candidates[{index}]", candidate.hyperparameters or {}
        if candidate.entry_point is not None:
            yield from _started(candidate.entry_point, place)
            inherited = {k: v for k, v in training.hyperparameters.items() if k not in own}
            yield from _arguments(inherited, candidate.entry_point, "training")
        entry_point = candidate.entry_point or training.entry_point
        yield from _arguments(own, entry_point, place)
        yield from _carried(workload, place, own, entry_point)


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
                "holds a null character, which no argument can", field=field, fix="remove it"
            )
        elif name == PARTITIONING:
            yield from _partitioning(value, field)
        elif entry_point != LAUNCHER and not survives(value):
            yield _changed(field, value, _LAUNCHER_FIX)
        elif entry_point == LAUNCHER and not survives(for_launcher(value)):
            yield _changed(field, value, "write it as text")


def _partitioning(value: Any, field: str) -> Iterator[InvalidInputError]:
    """The model-parallel library's settings; the file holds them as JSON text."""
    if not survives(json.loads(value)):
        yield _changed(field, value, "use plain numbers, true, false and words without spaces")


def _carried(
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
