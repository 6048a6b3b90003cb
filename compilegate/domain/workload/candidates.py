"""Reads the ``candidates`` of a workload document: each changes something, and something else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compilegate.domain.compilers import COMPILERS, MODES, NAMES, compiler_named
from compilegate.domain.fields import Fields
from compilegate.domain.workload.model import (
    BASELINE,
    CONTROL_SUFFIX,
    DISTRIBUTIONS,
    PRECISIONS,
    SCALINGS,
    Candidate,
    Framework,
    Training,
)
from compilegate.domain.workload.training import (
    batch_size,
    entry_point,
    hyperparameters,
    instance_count,
    instance_type,
    parse_framework,
)

# Every candidate has a letter in its jobs' names, and alpha / K to prove itself at.
MOST_CANDIDATES = 8

# Of all devices together, which the learning rate may follow.
CHANGES_THE_BATCH = {"batch_size", "instance_type", "instance_count", "distribution"}

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")


def parse_name(fields: Fields) -> str:
    """A name as jobs, flags and S3 keys can carry it."""
    name: str = fields.text("name")
    if not _NAME.fullmatch(name):
        raise fields.wrong(
            "name",
            "has characters that are not allowed in a name",
            "use 1 to 32 lower-case letters, digits and inner hyphens, such as bert-docs",
        )
    return name


def parse_candidates(
    fields: Fields, training: Training, framework: Framework
) -> tuple[Candidate, ...]:
    """Every candidate, none for a workload that leaves them to the planner."""
    items = list(fields.sections("candidates"))
    if len(items) > MOST_CANDIDATES:
        raise fields.wrong(
            "candidates",
            f"names {len(items)} candidates",
            f"name at most {MOST_CANDIDATES}, preferably three: candidates share the error budget, "
            "so each additional one makes every proof take longer",
        )
    seen: dict[str, Mapping[str, Any]] = {}
    candidates = []
    for item in items:
        candidate = _candidate(item)
        changes = _changes(candidate, training, framework)
        _check_name(item, candidate.name, seen)
        _check_change(item, changes, seen)
        seen[candidate.name] = changes
        candidates.append(candidate)
    return tuple(candidates)


def _candidate(fields: Fields) -> Candidate:
    framework = fields.optional_section("framework")
    candidate = Candidate(
        name=parse_name(fields),
        compiler=fields.choice("compiler", NAMES, None),
        batch_size=batch_size(fields, None),
        learning_rate_scaling=fields.choice("learning_rate_scaling", SCALINGS, None),
        instance_type=instance_type(fields, None),
        instance_count=instance_count(fields, None),
        precision=fields.choice("precision", PRECISIONS, None),
        distribution=fields.choice("distribution", DISTRIBUTIONS, None),
        compile_mode=fields.choice("compile_mode", MODES, None),
        framework=parse_framework(framework) if framework else None,
        entry_point=entry_point(fields, None),
        hyperparameters=hyperparameters(fields) or None,
    )
    fields.done()
    compiler, mode = compiler_named(candidate.compiler), candidate.compile_mode
    if mode and (compiler is None or mode not in compiler.modes):
        owners = [one.name for one in COMPILERS.values() if mode in one.modes]
        raise fields.wrong(
            "compile_mode", f"is a setting of {' and '.join(owners)}", f"add compiler: {owners[0]}"
        )
    return candidate


def _changes(candidate: Candidate, training: Training, framework: Framework) -> dict[str, Any]:
    """What a candidate really changes: not what it says again, nor how it says it."""
    unchanged = {**vars(training), "compiler": "none", "compile_mode": "default"}
    changes = {
        key: value for key, value in candidate.overrides().items() if value != unchanged.get(key)
    }
    if candidate.framework == framework:
        del changes["framework"]
    own = changes.pop("hyperparameters", {}).items() - training.hyperparameters.items()
    return {**changes, "hyperparameters": dict(own)} if own else changes


def _check_name(fields: Fields, name: str, seen: Mapping[str, object]) -> None:
    if name == BASELINE or name in seen:
        problem = "is reserved" if name == BASELINE else "is used twice"
        fix = f"give every candidate its own name, other than {BASELINE}"
        raise fields.wrong("name", problem, fix)
    if name.endswith(CONTROL_SUFFIX):
        problem = f"ends in {CONTROL_SUFFIX}, as only a trial's own controls do"
        fix = f"give it another name, such as {name.removesuffix(CONTROL_SUFFIX)}-2"
        raise fields.wrong("name", problem, fix)


def _check_change(fields: Fields, changes: Mapping[str, Any], seen: Mapping[str, object]) -> None:
    if "learning_rate_scaling" in changes and not changes.keys() & CHANGES_THE_BATCH:
        problem = "has no effect without another batch size or number of devices"
        raise fields.wrong("learning_rate_scaling", problem, "add batch_size, or remove it")
    if not changes:
        problem = "names a candidate that changes nothing"
        raise fields.wrong("name", problem, "add what it changes from the workload")
    twin = next((name for name, other in seen.items() if other == changes), None)
    if twin:
        problem, fix = f"names a candidate that changes the same as {twin}", "remove one of the two"
        raise fields.wrong("name", problem, fix)
