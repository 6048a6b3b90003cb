"""``compilegate schema``: the JSON Schema of the workload file, from its keys' declarations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from compilegate.cli.common.output import emit_json
from compilegate.cli.common.session import JsonOption
from compilegate.domain.expected import REQUIRED, Key
from compilegate.domain.fields import LARGEST, LONGEST_TEXT
from compilegate.domain.workload.file import VERSION
from compilegate.domain.workload.model import Workload

# What follows is plain enough for every version since 2019; editors know this one.
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"text": "string", "number": "number", "integer": "integer", "flag": "boolean"}
_PLAIN = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_HOLDS: Mapping[str, Mapping[str, Any]] = {
    "numbers": {"type": "array", "items": {"type": "number"}},
    "texts": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "mapping": _PLAIN,
    "figures": _PLAIN,
    "words": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
}


def schema(*, as_json: JsonOption = False) -> None:  # noqa: ARG001 - a schema is JSON anyway
    """Print the JSON Schema of workload files.

    \b
    compilegate schema > workload.schema.json

    For editors: one with the YAML language server reads it where a file begins with
    # yaml-language-server: $schema=workload.schema.json
    `compilegate check` knows more: folders, data, and what keys mean together.
    """
    emit_json(workload_schema())


def workload_schema() -> dict[str, Any]:
    """The JSON Schema of a workload file: necessary, while ``compilegate check`` knows more."""
    return {
        "$schema": DIALECT,
        "title": "Compilegate workload file",
        "description": "One training job. compilegate check FILE also checks what a schema cannot.",
        **_object({"schema": VERSION, **Workload.keys()}),
    }


def _object(keys: Mapping[str, Key]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _described(key) for name, key in keys.items()},
        "required": [name for name, key in keys.items() if key.default is REQUIRED],
        "additionalProperties": False,
    }


def _described(key: Key) -> dict[str, Any]:
    """The schema of one key; null is as good as leaving an optional one out."""
    text = "; ".join(part for part in (key.about, key.unit) if part)
    described = {"description": text, **_value(key)}
    if key.default is REQUIRED:
        return described
    if "enum" in described:
        described["enum"] = [*described["enum"], None]
    else:
        described["type"] = [described["type"], "null"]
    if isinstance(key.default, str | float | int):
        described["default"] = key.default
    return described


def _value(key: Key) -> dict[str, Any]:
    if key.kind == "version":
        return {"type": "integer", "const": key.low}
    if key.kind in _HOLDS:
        return dict(_HOLDS[key.kind])
    if key.kind == "choice":
        return {"enum": list(key.allowed)}
    if key.kind == "sections":
        return {"type": "array", "items": _object(key.inner.keys())}
    if key.kind == "section":
        return _object(key.inner.keys())
    high = min(key.high, LARGEST) if key.kind == "number" else key.high
    bounds = {"minimum": key.low, "maximum": high, "exclusiveMinimum": key.above}
    described = {name: bound for name, bound in bounds.items() if math.isfinite(bound)}
    return {"type": _TYPES[key.kind], **described, **(_text(key) if key.kind == "text" else {})}


def _text(key: Key) -> dict[str, Any]:
    longest = LONGEST_TEXT if key.form is None or key.form.longest is None else key.form.longest
    pattern = {} if key.form is None else {"pattern": f"^(?:{key.form.pattern.pattern})$"}
    return {"minLength": 1, "maxLength": longest, **pattern}
