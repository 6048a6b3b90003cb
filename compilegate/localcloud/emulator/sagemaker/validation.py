"""Checks of a request before a job exists.

botocore's validator knows types and required fields; lengths, patterns, enums and ranges
stand in the service model too but botocore leaves them to the service, so they are walked
here. Source: service-2.json of the SageMaker API, shipped with botocore.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

import botocore.session
import botocore.validate

from compilegate.localcloud.emulator.sagemaker.errors import ApiError


@functools.cache
def service_model() -> Any:
    """The SageMaker API description."""
    return botocore.session.get_session().get_service_model("sagemaker")


def check_request(operation: str, request: dict[str, Any]) -> None:
    """Refuse a request that the service model forbids.

    Raises ApiError(ValidationException) that lists every violated constraint.
    """
    shape = service_model().operation_model(operation).input_shape
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
