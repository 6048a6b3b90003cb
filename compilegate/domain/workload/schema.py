"""Every key of the workload file, as its reader asks for it, and the JSON Schema of that.

There is no second list of keys: a document that has every section is read, and what is asked for
is noted.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from compilegate.domain.expected import REQUIRED, Expected, Reading
from compilegate.domain.fields import LONGEST_TEXT
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import SCHEMA

# What follows is plain enough for every version since 2019; editors know this one.
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"text": "string", "number": "number", "integer": "integer", "flag": "boolean"}
_HOLDS: dict[str, dict[str, Any]] = {
    "numbers": {"type": "array", "items": {"type": "number"}},
    "texts": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "mapping": {
        "type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]},
    },
    "words": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
}  # fmt: skip
_INDEX = re.compile(r"\[\d+\]")
_FRAMEWORK = {"name": "pytorch", "version": "2.6.0"}
_GROUP = {"instance_type": "ml.g5.xlarge", "instance_count": 1}
# Has every section, so that its keys are asked for.
_EVERY_SECTION: dict[str, Any] = {
    "schema": 1,
    "name": "job",
    "framework": _FRAMEWORK,
    "model": {"family": "custom", "name": "model"},
    "training": {
        "source_dir": "code", "entry_point": "train.py", **_GROUP, "distribution": "none",
        "precision": "fp32", "batch_size": 1, "learning_rate": 0.1, "max_runtime_hours": 1,
        "instance_groups": [{"name": "group", **_GROUP}],
    },
    "shapes": {"static": True},
    "schedule": {"runs_per_week": 1, "run_hours": 1},
    "profile": {},
    "quality": {"metric": "eval_loss", "goal": "minimize", "margin": 0.1},
    "policy": {},
    "candidates": [{"name": "older", "framework": {"name": "pytorch", "version": "2.5.0"}}],
    "facts": {"images": [{**_FRAMEWORK, "framework": "pytorch", "uri":
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"}]},
}  # fmt: skip
del _EVERY_SECTION["facts"]["images"][0]["name"]


def every_key() -> list[Expected]:
    """Every key of a workload file, in the order in which it is read."""
    reading = Reading(expected=[])
    parse_workload(_EVERY_SECTION, reading)
    return [_only_version(key) if key.path == "schema" else key for key in reading.expected or ()]


def _only_version(key: Expected) -> Expected:
    """The reader asks for a whole number and takes one alone."""
    return replace(key, kind="version", unit="", low=SCHEMA, high=SCHEMA)


def workload_schema() -> dict[str, Any]:
    """The JSON Schema of a workload file: necessary, while ``compilegate check`` knows more."""
    root = {
        "$schema": DIALECT,
        "title": "Compilegate workload file",
        "description": "One training job. compilegate check FILE also checks what a schema cannot.",
        **_object(),
    }
    objects = {"": root}
    for key in every_key():
        path = _INDEX.sub("", key.path)
        parent, _, name = path.rpartition(".")
        described, inner = _described(key)
        objects[parent]["properties"][name] = described
        if key.default is REQUIRED:
            objects[parent]["required"].append(name)
        if inner is not None:
            objects[path] = inner
    return root


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _described(key: Expected) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The schema of one key, and within it that of an object whose keys follow."""
    inner = _object() if key.kind in ("section", "sections") else None
    described = inner if key.kind == "section" else _value(key, inner)
    optional = key.default is not REQUIRED
    text = "; ".join(part for part in (key.about, key.unit) if part)
    described = {"description": text, **(described or {})}
    if key.kind == "section":
        inner = described
    if optional and "enum" in described:
        described["enum"] = [*described["enum"], None]
    elif optional:
        described["type"] = [described["type"], "null"]
    if optional and isinstance(key.default, str | float | int):
        described["default"] = key.default
    return described, inner


def _value(key: Expected, item: dict[str, Any] | None) -> dict[str, Any]:
    if key.kind in _HOLDS:
        return dict(_HOLDS[key.kind])
    if key.kind == "version":
        return {"type": "integer", "const": key.low}
    if key.kind == "choice":
        return {"enum": list(key.allowed)}
    if key.kind == "sections":
        return {"type": "array", "items": item}
    bounds = {"minimum": key.low, "maximum": key.high, "exclusiveMinimum": key.above}
    described = {name: bound for name, bound in bounds.items() if math.isfinite(bound)}
    return {"type": _TYPES[key.kind], **described, **(_text(key) if key.kind == "text" else {})}


def _text(key: Expected) -> dict[str, Any]:
    longest = LONGEST_TEXT if key.form is None or key.form.longest is None else key.form.longest
    pattern = {} if key.form is None else {"pattern": f"^(?:{key.form.pattern.pattern})$"}
    return {"minLength": 1, "maxLength": longest, **pattern}
