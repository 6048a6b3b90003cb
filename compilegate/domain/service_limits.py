"""Everything that the service's own model forbids in a request.

botocore knows types and required fields; lengths, patterns, enums and ranges stand in the model
too, but only the service enforces them, after the request is sent. Shapes are plain
dictionaries, as ``facts/create_training_job.json`` keeps them.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.wording import sentences

Shapes = Mapping[str, Mapping[str, Any]]

_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "structure": ((dict,), "a mapping"),
    "map": ((dict,), "a mapping"),
    "list": ((list,), "a list"),
    "string": ((str,), "text"),
    "integer": ((int,), "a whole number"),
    "long": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "double": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
}
_NEAREST = 3


@dataclass(frozen=True)
class Violation:
    """A value that the model forbids; ``path`` says where in the request it stands."""

    path: str
    value: object
    rule: str


def violations(shapes: Shapes, name: str, value: object, path: str = "") -> Iterator[Violation]:
    """Every violation in ``value``, which should have the shape called ``name``."""
    shape = shapes[name]
    kinds, called = _TYPES[shape["type"]]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        yield Violation(path, value, f"must be {called}")
    elif isinstance(value, dict):
        walk = _structure if shape["type"] == "structure" else _map
        yield from walk(shapes, shape, value, path)
    elif isinstance(value, list):
        yield from _outside(shape, len(value), value, path, "entries")
        for index, item in enumerate(value):
            yield from violations(shapes, shape["member"], item, f"{path}[{index}]")
    elif isinstance(value, str):
        yield from _string(shape, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _outside(shape, value, value, path, "")


def _structure(
    shapes: Shapes, shape: Mapping[str, Any], value: Mapping[str, Any], path: str
) -> Iterator[Violation]:
    members = shape["members"]
    for name in shape.get("required", ()):
        if name not in value:
            yield Violation(_join(path, name), None, "is missing")
    for name, item in value.items():
        if name in members:
            yield from violations(shapes, members[name], item, _join(path, name))
        else:
            yield Violation(_join(path, name), item, "is not a field of the request")


def _map(
    shapes: Shapes, shape: Mapping[str, Any], value: Mapping[str, Any], path: str
) -> Iterator[Violation]:
    yield from _outside(shape, len(value), value, path, "entries")
    for key, item in value.items():
        yield from violations(shapes, shape["key"], key, f"{path} (the name)")
        yield from violations(shapes, shape["value"], item, _join(path, key))


def _string(shape: Mapping[str, Any], value: str, path: str) -> Iterator[Violation]:
    yield from _outside(shape, len(value), value, path, "characters")
    pattern = shape.get("pattern")
    if pattern and not _compiled(pattern).fullmatch(value):
        yield Violation(path, value, f"must match {pattern}")
    allowed = shape.get("enum")
    if allowed and value not in allowed:
        near = difflib.get_close_matches(value, allowed, n=_NEAREST) or sorted(allowed)[:_NEAREST]
        yield Violation(path, value, f"must be a value such as {', '.join(near)}")


def _outside(
    shape: Mapping[str, Any], size: float, value: object, path: str, unit: str
) -> Iterator[Violation]:
    least, most = shape.get("min", -math.inf), shape.get("max", math.inf)
    counted = f"{unit}, has {size:g}" if unit else ""
    limited = f" {counted}" if counted else ""
    if size < least:
        yield Violation(path, value, f"must be at least {least}{limited}")
    if size > most:
        yield Violation(path, value, f"must be at most {most}{limited}")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The model's Java pattern for Python; one that takes any text where it cannot say the same."""
    translated = pattern.replace(r"\p{L}", r"\w").replace(r"\p{N}", r"\d").replace(r"\p{Z}", r"\s")
    try:
        return re.compile(translated)
    except re.error:
        return re.compile(".*", re.DOTALL)


# Why SageMaker or Step Functions would reject a request of ours.
#
# The service's model states most rules; ``broken_rules`` are those that its documentation adds
# (API reference of CreateTrainingJob, StoppingCondition and Tag).

Request = Mapping[str, Any]
# The state machine appends it to the name; one digit is the longest.
RETRY_SUFFIX = "-r9"
_SHOWN = 80
UNKNOWN = {"field": "the workload", "fix": "change what the message names"}
NOT_PASSED_ON = "is not a field that Step Functions passes on to SageMaker"


@dataclass(frozen=True)
class RequestLimits:
    """What SageMaker takes, and the fields that Step Functions passes on to it.

    ``model`` is facts/create_training_job.json, ``passed_on`` facts/step_functions_fields.json.
    """

    model: Mapping[str, Any]
    passed_on: Collection[str]

    def check(self, request: Request) -> None:
        """Raises InvalidInputError with the first thing that the service would refuse.

        SageMaker's own limits come first, then the fields that Step Functions does not pass on.
        """
        for problem in problems(request, self.model):
            raise problem
        for violation in unsupported_fields(self.passed_on, request):
            raise _problem(violation)


def problems(request: Mapping[str, Any], model: Mapping[str, Any]) -> Iterator[InvalidInputError]:
    """Everything that the service would refuse; ``model`` is facts/create_training_job.json."""
    named = {**request, "TrainingJobName": f"{request['TrainingJobName']}{RETRY_SUFFIX}"}
    broken = list(violations(model["shapes"], model["input"], named))
    # The rules read fields that the model requires.
    for violation in broken or broken_rules(named):
        yield _problem(violation)


def _problem(violation: Violation) -> InvalidInputError:
    """The violation as an error that names the field of the workload file, and a fix."""
    origins = sentences(Path(__file__).with_suffix(".toml")).items()
    origin = next((says for prefix, says in origins if violation.path.startswith(prefix)), UNKNOWN)
    value = violation.value if len(repr(violation.value)) <= _SHOWN else None
    return InvalidInputError(
        f"{violation.path} of the job's request {violation.rule}", value=value, **origin
    )


def broken_rules(request: Request) -> Iterator[Violation]:
    """Every rule across fields that the request breaks; it is of the model's shape."""
    algorithm, cluster = request["AlgorithmSpecification"], request["ResourceConfig"]
    named = [name for name in ("TrainingImage", "AlgorithmName") if algorithm.get(name)]
    if len(named) != 1:
        yield Violation("AlgorithmSpecification", named, "needs TrainingImage or AlgorithmName")
    single = cluster.get("InstanceType") and cluster.get("InstanceCount")
    if not single and not cluster.get("InstanceGroups"):
        yield Violation("ResourceConfig", cluster, "needs InstanceType and InstanceCount")
    names = [channel["ChannelName"] for channel in request.get("InputDataConfig", ())]
    if len(set(names)) != len(names):
        yield Violation("InputDataConfig", names, "must have channels of different names")
    limits, path = request["StoppingCondition"], "StoppingCondition.MaxWaitTimeInSeconds"
    wait, runtime = limits.get("MaxWaitTimeInSeconds"), limits.get("MaxRuntimeInSeconds")
    spot = bool(request.get("EnableManagedSpotTraining"))
    if wait is None:
        if spot:
            yield Violation(path, None, "is missing, a spot job needs it")
    else:
        if not spot:
            yield Violation(path, wait, "is for spot jobs only")
        if runtime is not None and wait < runtime:
            yield Violation(path, wait, f"must be at least MaxRuntimeInSeconds ({runtime})")
    keys = [tag["Key"] for tag in request.get("Tags", ())]
    for key in keys:
        if key.lower().startswith("aws:"):
            yield Violation("Tags", key, "must not begin with aws:, which is reserved")
    if len(set(keys)) != len(keys):
        yield Violation("Tags", keys, "must have different keys")


def unsupported_fields(supported: Collection[str], request: Mapping[str, Any]) -> list[Violation]:
    """Fields of ``request`` that Step Functions' optimised integration does not pass on.

    ``supported`` are paths to leaves (``facts/step_functions_fields.json``), through lists as if
    each held one entry; below a leaf every name is allowed. Any other field ends the execution as
    ``States.Runtime``, which no Catch sees, and only when the state runs.
    """
    ways = {leaf[:end] for leaf in supported for end, c in enumerate(leaf) if c == "."}
    return list(_unsupported(frozenset(supported), frozenset(ways), request, ""))


def _unsupported(
    leaves: frozenset[str], ways: frozenset[str], value: object, path: str
) -> Iterator[Violation]:
    if path in leaves:
        return
    if path and path not in ways:
        yield Violation(path, value, NOT_PASSED_ON)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _unsupported(leaves, ways, item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _unsupported(leaves, ways, item, path)
