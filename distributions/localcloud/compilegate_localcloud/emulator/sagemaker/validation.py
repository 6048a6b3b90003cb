"""Checks of a request before a job exists: the service model, rules beyond it, the integration.

botocore's validator knows types and required fields; lengths, patterns, enums and ranges are in
the service model too, but botocore leaves them to the service, so they are checked here. Source:
service-2.json of the SageMaker API, shipped with botocore.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlparse

import botocore.validate

from compilegate_localcloud.emulator.clients import service_model
from compilegate_localcloud.emulator.sagemaker.failures import ApiError
from compilegate_localcloud.emulator.settings import read_facts

Request = dict[str, Any]


def check_request(operation: str, request: dict[str, Any], service: str = "sagemaker") -> None:
    """Refuse a request that the service model forbids.

    Raises ApiError(ValidationException) that lists every violated constraint.
    """
    shape = service_model(service).operation_model(operation).input_shape
    report = botocore.validate.ParamValidator().validate(request, shape)
    if report.has_errors():
        raise ApiError("ValidationException", report.generate_report())
    violations = list(_violations(shape, request, ""))
    if violations:
        count = f"{len(violations)} validation error{'s' if len(violations) > 1 else ''} detected"
        raise ApiError("ValidationException", f"{count}: {'; '.join(violations)}")


def _violations(shape: Any, value: Any, path: str) -> Iterator[str]:
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if name in value:
                yield from _violations(member, value[name], _join(path, name))
    elif shape.type_name == "list":
        yield from _outside_limits(shape, len(value), value, path, "have length")
        for index, item in enumerate(value, start=1):
            yield from _violations(shape.member, item, f"{path}.{index}.member")
    elif shape.type_name == "map":
        yield from _outside_limits(shape, len(value), value, path, "have length")
        for key, item in value.items():
            yield from _violations(shape.key, key, f"{path}.key")
            yield from _violations(shape.value, item, f"{path}.{key}.value")
    elif shape.type_name == "string":
        yield from _string_violations(shape, value, path)
    elif shape.type_name in ("integer", "long", "float", "double"):
        yield from _outside_limits(shape, value, value, path, "have value")


def _string_violations(shape: Any, value: str, path: str) -> Iterator[str]:
    yield from _outside_limits(shape, len(value), value, path, "have length")
    pattern = shape.metadata.get("pattern")
    if pattern and not _matches(pattern, value):
        rule = f"Member must satisfy regular expression pattern: {pattern}"
        yield _violation(value, path, rule)
    allowed = shape.metadata.get("enum")
    if allowed and value not in allowed:
        rule = f"Member must satisfy enum value set: [{', '.join(allowed)}]"
        yield _violation(value, path, rule)


def _outside_limits(shape: Any, size: float, value: Any, path: str, measure: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and size < least:
        yield _violation(value, path, f"Member must {measure} greater than or equal to {least}")
    if most is not None and size > most:
        yield _violation(value, path, f"Member must {measure} less than or equal to {most}")


def _violation(value: Any, path: str, rule: str) -> str:
    shown = str(value) if len(str(value)) <= 300 else f"{str(value)[:300]}..."
    return f"Value '{shown}' at '{path}' failed to satisfy constraint: {rule}"


def _join(path: str, name: str) -> str:
    """The service names fields with a small first letter in its messages."""
    field = name[0].lower() + name[1:]
    return f"{path}.{field}" if path else field


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.fullmatch(value) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The model's Java pattern for Python; None where Python cannot say the same."""
    translated = pattern.replace(r"\p{L}", r"\w").replace(r"\p{N}", r"\d").replace(r"\p{Z}", r"\s")
    try:
        return re.compile(translated)
    except re.error:
        return None


def check_semantics(request: Request) -> None:
    """Refuse what the service refuses beyond its model, and inputs that are not supported here.

    Raises ApiError(ValidationException) that names the first broken rule.
    """
    for rule in _RULES:
        for problem in rule(request):
            raise ApiError("ValidationException", problem)


def _algorithm(request: Request) -> Iterator[str]:
    algorithm = request["AlgorithmSpecification"]
    sources = [name for name in ("TrainingImage", "AlgorithmName") if algorithm.get(name)]
    if len(sources) != 1:
        yield "You must specify exactly one of TrainingImage and AlgorithmName."
    elif sources == ["AlgorithmName"]:
        yield "The local cloud runs script-mode images only; AlgorithmName is not supported."


def _resources(request: Request) -> Iterator[str]:
    resources = request.get("ResourceConfig") or {}
    if not resources.get("InstanceType") and not resources.get("InstanceGroups"):
        yield "ResourceConfig must name InstanceType or InstanceGroups."
    if resources.get("InstanceType") and not resources.get("InstanceCount"):
        yield "ResourceConfig.InstanceCount is required with InstanceType."


def _locations(request: Request) -> Iterator[str]:
    places = {
        "outputDataConfig.s3OutputPath": (request.get("OutputDataConfig") or {}).get(
            "S3OutputPath"
        ),
        "checkpointConfig.s3Uri": (request.get("CheckpointConfig") or {}).get("S3Uri"),
    }
    if not places["outputDataConfig.s3OutputPath"]:
        yield "OutputDataConfig.S3OutputPath is required."
    for field, place in places.items():
        if place is not None and urlparse(place).scheme not in ("s3", "https"):
            yield f"The S3 URI in {field} must begin with s3://, got {place!r}."


def _channels(request: Request) -> Iterator[str]:
    channels = request.get("InputDataConfig") or []
    names = [channel["ChannelName"] for channel in channels]
    if len(set(names)) != len(names):
        yield f"Channel names must be unique, got {names}."
    for channel in channels:
        source = channel["DataSource"].get("S3DataSource")
        if source is None or source["S3DataType"] != "S3Prefix":
            yield f"The local cloud reads S3Prefix channels only; {channel['ChannelName']} is not."
        mode = channel.get("InputMode") or request["AlgorithmSpecification"]["TrainingInputMode"]
        if mode == "Pipe":
            yield "The local cloud does not provide input mode Pipe; use File or FastFile."


def _spot(request: Request) -> Iterator[str]:
    stopping = request.get("StoppingCondition") or {}
    wait, runtime = stopping.get("MaxWaitTimeInSeconds"), stopping.get("MaxRuntimeInSeconds")
    spot = bool(request.get("EnableManagedSpotTraining"))
    if spot and wait is None:
        yield "MaxWaitTimeInSeconds is required when EnableManagedSpotTraining is true."
    if not spot and wait is not None:
        yield "MaxWaitTimeInSeconds is only allowed when EnableManagedSpotTraining is true."
    if wait is not None and runtime is not None and wait < runtime:
        yield "MaxWaitTimeInSeconds must be at least MaxRuntimeInSeconds."


def _tags(request: Request) -> Iterator[str]:
    for tag in request.get("Tags") or []:
        if tag["Key"].lower().startswith("aws:"):
            yield f"Tag key {tag['Key']!r} uses the reserved prefix aws:."


_RULES: tuple[Callable[[Request], Iterator[str]], ...] = (
    _algorithm,
    _resources,
    _locations,
    _channels,
    _spot,
    _tags,
)


def unsupported_fields(value: Any, path: str = "") -> Iterator[str]:
    """Name every field below ``path`` that ``step_functions_fields.json`` does not list or lead to.

    A path leads through lists as if each held one entry. Below a listed field any name goes.
    """
    if isinstance(value, list):
        for item in value:
            yield from unsupported_fields(item, path)
    elif isinstance(value, dict) and path not in _supported():
        for name, item in value.items():
            below = f"{path}.{name}" if path else name
            if any(field == below or field.startswith(f"{below}.") for field in _supported()):
                yield from unsupported_fields(item, below)
            else:
                yield name


@functools.cache
def _supported() -> frozenset[str]:
    return frozenset(row["field"] for row in read_facts("step_functions_fields")["rows"])
