"""Reads the ``candidates`` of a workload document: each changes something, and something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compilegate.domain.compilers import COMPILERS, MODES, NAMES, compiler_named
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import Form
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

# A key of the candidate, what is wrong with it, and the fix.
Problem = tuple[str, str, str]
# Of all devices together, which the learning rate may follow.
CHANGES_THE_BATCH = {"batch_size", "instance_type", "instance_count", "distribution"}

_NAME = Form(
    re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"),
    "has characters that are not allowed in a name",
    "use 1 to 32 lower-case letters, digits and inner hyphens, such as bert-docs",
)


def parse_name(fields: Fields) -> str:
    """A name as jobs, flags and S3 keys can carry it."""
    name: str = fields.text("name", form=_NAME, about="unique; in names of jobs, flags and keys")
    return name


def parse_candidates(fields: Fields) -> tuple[Candidate, ...]:
    """Every candidate, none for a workload that leaves them to the planner."""
    about = "proposed changes; derived by the planner if absent"
    items = list(fields.sections("candidates", about=about))
    if len(items) > MOST_CANDIDATES:
        fields.refuse(
            "candidates",
            f"names {len(items)} candidates",
            f"name at most {MOST_CANDIDATES}, preferably three: candidates share the error budget, "
            "so each additional one makes every proof take longer",
        )
    return tuple(_candidate(item) for item in items)


def check_candidates(
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


def _candidate(fields: Fields) -> Candidate:
    framework = fields.optional_section("framework", about="another image")
    scaling = "how the learning rate follows the batch of all devices"
    candidate = Candidate(
        name=parse_name(fields),
        compiler=fields.choice("compiler", NAMES, None, about="that it turns on"),
        batch_size=batch_size(fields, None),
        learning_rate_scaling=fields.choice("learning_rate_scaling", SCALINGS, None, about=scaling),
        instance_type=instance_type(fields, None),
        instance_count=instance_count(fields, None),
        precision=fields.choice("precision", PRECISIONS, None, about="another precision"),
        distribution=fields.choice("distribution", DISTRIBUTIONS, None, about="another launcher"),
        compile_mode=fields.choice("compile_mode", MODES, None, about="of torch.compile"),
        framework=parse_framework(framework) if framework else None,
        entry_point=entry_point(fields, None),
        hyperparameters=hyperparameters(fields) or None,
    )
    if not fields.done():
        return candidate
    compiler, mode = compiler_named(candidate.compiler), candidate.compile_mode
    if mode and (compiler is None or mode not in compiler.modes):
        owners = [one.name for one in COMPILERS.values() if mode in one.modes]
        fields.refuse(
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
