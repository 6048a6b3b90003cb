"""Everything that the service's own model forbids in a request.

botocore knows types and required fields; lengths, patterns, enums and ranges stand in the model
too, but only the service enforces them, after the request is sent. Shapes are plain
dictionaries, as ``facts/create_training_job.json`` keeps them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

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
    if pattern and not _matches(pattern, value):
        yield Violation(path, value, f"must match {pattern}")
    allowed = shape.get("enum")
    if allowed and value not in allowed:
        near = difflib.get_close_matches(value, allowed, n=_NEAREST) or sorted(allowed)[:_NEAREST]
        yield Violation(path, value, f"must be a value such as {', '.join(near)}")


def _outside(
    shape: Mapping[str, Any], size: float, value: object, path: str, unit: str
) -> Iterator[Violation]:
    least, most = shape.get("min"), shape.get("max")
    counted = f"{unit}, has {size:g}" if unit else ""
    limited = f" {counted}" if counted else ""
    if least is not None and size < least:
        yield Violation(path, value, f"must be at least {least}{limited}")
    if most is not None and size > most:
        yield Violation(path, value, f"must be at most {most}{limited}")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.fullmatch(value) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The model's Java pattern for Python; None where Python cannot say the same."""
    translated = pattern.replace(r"\p{L}", r"\w").replace(r"\p{N}", r"\d").replace(r"\p{Z}", r"\s")
    try:
        return re.compile(translated)
    except re.error:
        return None
