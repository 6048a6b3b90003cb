"""Reads a flag in any Python that trains, with the standard library alone.

The deployment reads flags with the rest of its documents (domain/flag.py, domain/production/job.py)
and writes none that they refuse. Here it is told what this release can follow from what it cannot:
what a newer deployment may write, and what nobody meant. tests/flags/test_document.py compares the
two.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.argument_text import entry_point_survives, name_survives
from compilegate.domain.compilers import MODES, NAMES

SCHEMA = 1
BASELINE = "baseline"
STATES = ("off", "probation", "permanent", "reverted", "stale")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
DISTRIBUTIONS = ("none", "pytorchddp", "torch_distributed", "pytorchxla", "smddp", "smp")
# States in which a flag is never on: one that is on nevertheless was written by no deployment.
NEVER_ON = ("off", "reverted")
# Bounds of a workload file (domain/workload/model.py, domain/fields.py).
MOST_SAMPLES, MOST_INSTANCES, MOST_LEARNING_RATE = 10**7, 1000, 1000.0
LARGEST_WHOLE = 2**64
# What the trial passes to every script itself (domain/workload/names.py); what the toolkit reads.
OWN_HYPERPARAMETERS = (
    "arm", "compiler", "compile_mode", "precision", "batch_size", "learning_rate", "seed",
    "replicate", "max_steps", "training_script",
)  # fmt: skip
TOOLKIT_PREFIX = "sagemaker_"
UPDATE = "update compilegate-flags, or set the flag through compilegate"


class UnreadableFlagError(ValueError):
    """A flag that this release cannot follow; the message says why and what to do."""


@dataclass(frozen=True)
class FlagDocument:
    """What a flag says of the arm that production trains."""

    enabled: bool
    state: str
    candidate: str | None
    overrides: Mapping[str, Any]
    decision_id: str | None
    holdback: float | None = None


def read(text: str) -> FlagDocument:
    """The parameter's value; raises UnreadableFlagError where it is malformed."""
    try:
        document = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_without_repeats
        )
    except UnreadableFlagError:
        raise
    except (ValueError, RecursionError) as error:  # RecursionError: brackets within brackets
        raise UnreadableFlagError(f"the flag is not JSON. Fix: {UPDATE}") from error
    if not isinstance(document, dict):
        raise UnreadableFlagError(f"the flag is not a JSON object. Fix: {UPDATE}")
    keys = ("enabled", "state", "candidate", "overrides", "decision_id", "holdback")
    values: list[Any] = [document.get(key) for key in keys]
    enabled, state, candidate, overrides, decision_id, holdback = values
    problems = {
        "schema": type(document.get("schema")) is int and document["schema"] == SCHEMA,
        "enabled": isinstance(enabled, bool),
        "state": state in STATES and not (enabled and state in NEVER_ON),
        "candidate": candidate is None or _is_text(candidate),
        "overrides": overrides is None or isinstance(overrides, dict),
        "decision_id": decision_id is None or _is_text(decision_id),
        "holdback": holdback is None or (type(holdback) in (int, float) and 0 <= holdback <= 1),
    }
    for key, sound in problems.items():
        if not sound:
            raise UnreadableFlagError(
                f"flag.{key} is nothing that this release can read (got "
                f"{str(document.get(key))[:120]!r}). Fix: {UPDATE}"
            )
    return FlagDocument(enabled, state, candidate, overrides or {}, decision_id, holdback)


def check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raises UnreadableFlagError for a key or value that this release cannot lay over a job."""
    for key, value in overrides.items():
        if key not in _CHECKS:
            raise UnreadableFlagError(
                f"flag.overrides.{key} is not a key that this release can override. Fix: {UPDATE}"
            )
        if not _CHECKS[key](value):
            raise UnreadableFlagError(
                f"flag.overrides.{key} is nothing that a job can have (got {str(value)[:120]!r}). "
                f"Fix: {UPDATE}"
            )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value) and value.isprintable()


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; of a key written twice nobody knows which value was meant."""
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UnreadableFlagError(f"the flag has the key {twice[:120]!r} twice. Fix: {UPDATE}")
    return document


def _is_count(most: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and 0 < value <= most


def _is_plain(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) or (isinstance(value, int) and abs(value) <= LARGEST_WHOLE)


def _are_arguments(value: object) -> bool:
    """Plain values by names that a script's arguments can have and a flag may set."""
    return isinstance(value, dict) and all(
        name_survives(name)
        and name not in OWN_HYPERPARAMETERS
        and not name.startswith(TOOLKIT_PREFIX)
        and _is_plain(one)
        for name, one in value.items()
    )


def _is_framework(value: object) -> bool:
    return (
        isinstance(value, dict)
        and all(_is_text(value.get(key)) for key in ("name", "version"))
        and all(one is None or _is_plain(one) for one in value.values())
    )


_INSTANCE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "compiler": lambda value: value in NAMES,
    "compile_mode": lambda value: value in MODES,
    "batch_size": _is_count(MOST_SAMPLES),
    "learning_rate": lambda value: type(value) in (int, float) and 0 < value <= MOST_LEARNING_RATE,
    "precision": lambda value: value in PRECISIONS,
    "instance_type": lambda value: _is_text(value) and bool(_INSTANCE.fullmatch(value)),
    "instance_count": _is_count(MOST_INSTANCES),
    "distribution": lambda value: value in DISTRIBUTIONS,
    "entry_point": lambda value: isinstance(value, str) and entry_point_survives(value),
    "hyperparameters": _are_arguments,
    "framework": _is_framework,
    "image": _is_text,
}
