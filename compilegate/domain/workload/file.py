"""Reads a workload document into a Workload, or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import Key, Problem, Reading
from compilegate.domain.fields import Fields
from compilegate.domain.workload.model import (
    BASELINE,
    CONTROL_SUFFIX,
    SCHEMA,
    Candidate,
    Framework,
    Training,
    Workload,
)

# The first key of the document; the others are the fields of a Workload.
VERSION = Key("version of this format", low=SCHEMA, high=SCHEMA, kind="version")
# Every candidate has a letter in its jobs' names, and alpha / K to prove itself at.
MOST_CANDIDATES = 8
# Of all devices together, which the learning rate may follow.
CHANGES_THE_BATCH = {"batch_size", "instance_type", "instance_count", "distribution"}


def parse_workload(document: object) -> Workload:
    """Read a workload document.

    Raises InvalidInputError naming every wrong field, its value and the fix.
    """
    reading = Reading()
    fields = Fields(document, reading=reading)
    version = fields.integer("schema", "schema version")
    if isinstance(version, int) and version != SCHEMA:
        fields.refuse("schema", "is a version this release cannot read", f"use {SCHEMA}")
    workload = fields.values(Workload)
    if len(workload.candidates) > MOST_CANDIDATES:
        fields.refuse(
            "candidates",
            f"names {len(workload.candidates)} candidates",
            f"name at most {MOST_CANDIDATES}, preferably three: candidates share the error budget, "
            "so each additional one makes every proof take longer",
        )
    if workload.owner is not None and "owner" in workload.tags:
        problem = "is the tag that `owner` at the top becomes"
        fields.refuse_item("tags", "owner", problem, "keep one of the two")
    fields.done()
    reading.end()
    reading.errors += _between_sections(workload)
    reading.end()
    return workload


def parse_name(fields: Fields) -> str:
    """A workload's name as jobs, flags and S3 keys can carry it; raises InvalidInputError."""
    name: str = fields.value("name", Workload.keys()["name"])
    return name


def _between_sections(workload: Workload) -> Iterator[InvalidInputError]:
    """What is wrong although every section is sound by itself."""
    hours, most = workload.schedule.run_hours, workload.training.max_runtime_hours
    if hours > most:
        yield InvalidInputError(
            f"is above training.max_runtime_hours ({most:g}), where a job is cut off",
            field="schedule.run_hours",
            value=hours,
            fix="raise the limit, or correct how long a run takes",
        )
    yield from _candidates(workload.candidates, workload.training, workload.framework)


def _candidates(
    candidates: Sequence[Candidate], training: Training, framework: Framework
) -> Iterator[InvalidInputError]:
    """What is wrong with the candidates of a sound document: each changes something of its own."""
    seen: dict[str, Mapping[str, Any]] = {}
    for index, candidate in enumerate(candidates):
        changes = _changes(candidate, training, framework)
        problem = _name_problem(candidate.name, seen) or _change_problem(changes, seen)
        if problem:
            field, text, fix = problem
            value = getattr(candidate, field)
            yield InvalidInputError(
                text, field=f"candidates[{index}].{field}", value=value, fix=fix
            )
        seen[candidate.name] = changes


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


def _name_problem(name: str, seen: Mapping[str, object]) -> Problem | None:
    if name == BASELINE or name in seen:
        problem = "is reserved" if name == BASELINE else "is used twice"
        return "name", problem, f"give every candidate its own name, other than {BASELINE}"
    if name.endswith(CONTROL_SUFFIX):
        problem = f"ends in {CONTROL_SUFFIX}, as only a trial's own controls do"
        fix = f"give it another name, such as {name.removesuffix(CONTROL_SUFFIX)}-2"
        return "name", problem, fix
    return None


def _change_problem(
    changes: Mapping[str, Any], seen: Mapping[str, Mapping[str, Any]]
) -> Problem | None:
    if "learning_rate_scaling" in changes and not changes.keys() & CHANGES_THE_BATCH:
        problem = "has no effect without another batch size or number of devices"
        return "learning_rate_scaling", problem, "add batch_size, or remove it"
    if not changes:
        problem = "names a candidate that changes nothing"
        return "name", problem, "add what it changes from the workload"
    twin = next((name for name, other in seen.items() if other == changes), None)
    if twin:
        problem = f"names a candidate that changes the same as {twin}"
        return "name", problem, "remove one of the two"
    return None
