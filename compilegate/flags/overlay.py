"""Applies a flag to a team's job, or leaves the job as it is and says why.

A job with a flag gets the hyperparameters that a job of Compilegate's own gets
(domain/request/build.py), so that the launcher and the recorder read the same names.

During a probation some jobs are left on the baseline, as by TRAIN (domain/production/begin.py):
without baselines of today, a change of the data would be blamed on the candidate. Here it is by
chance, because no run knows of those before it.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from compilegate.domain import naming
from compilegate.domain.argument_text import for_launcher, survives
from compilegate.domain.compilers import compiler_named
from compilegate.domain.followers import REFRESH_EVERY
from compilegate.flags.reading import Choice, choose, stage_name

logger = logging.getLogger("compilegate.flags")

# Overrides that reach the script as hyperparameters.
SCRIPT_ARGUMENTS = ("compiler", "compile_mode", "precision", "batch_size", "learning_rate")
# What scripts call two of them; with one of these beside ours it would be open which one counts.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "batch_size": (
        "per_device_train_batch_size", "train_batch_size", "batch-size", "train-batch-size", "bs",
    ),
    "learning_rate": ("lr", "learning-rate"),
}  # fmt: skip
# The settings of SageMaker's model-parallel library, JSON text in a flag.
PARTITIONING = "mp_parameters"
# CreateTrainingJob takes no more (its service model).
MOST_HYPERPARAMETERS, MOST_VARIABLES, MOST_TAGS = 100, 100, 50


Job = dict[str, Any]


@dataclass(frozen=True)
class FlagLookup:
    """Whose flag, and the script's own names for our hyperparameters."""

    name: str
    stage: str | None = None
    client: Any = None
    names: Mapping[str, str] = field(default_factory=dict)
    chance: Callable[[], float] = random.SystemRandom().random

    @property
    def deployment(self) -> str:
        """The stage whose flag is read."""
        return stage_name(self.stage)


@dataclass(frozen=True)
class Form:
    """How a team writes a job: where its tags, variables and image are.

    ``overridden`` applies the flag's changes; it may raise any error.
    """

    overridden: Callable[[Job, Choice, FlagLookup], Job]
    image: Callable[[Job], Any]
    tags: str = "tags"
    environment: str = "environment"
    tag_keys: tuple[str, str] = ("Key", "Value")


class CannotCarryError(Exception):
    """This job cannot be changed as the flag says; its message says why and what would help."""


def carry(job: Mapping[str, Any], form: Form, lookup: FlagLookup) -> Job:
    """The job as production should run it today; unchanged where anything fails."""
    original = dict(job)
    try:
        choice = choose(lookup.name, stage=lookup.stage, client=lookup.client)
    except Exception as error:  # noqa: BLE001 - a run never fails because of a flag
        choice = _baseline(lookup, "its flag cannot be read", error)
    if choice.watched and lookup.chance() * REFRESH_EVERY < 1:
        logger.info(
            "%s: a baseline run, like one in %d during a probation", lookup.name, REFRESH_EVERY
        )
        choice = Choice(decision_id=choice.decision_id)
    if choice.overrides:
        try:
            _check(choice.overrides)
            return _marked(form.overridden(original, choice, lookup), form, choice, lookup)
        except Exception as error:  # noqa: BLE001 - as above
            choice = _baseline(lookup, "the flag cannot be applied to its job", error)
    try:
        return _marked(original, form, choice, lookup)
    except Exception as error:  # noqa: BLE001 - as above
        _baseline(lookup, "its run will not be recorded", error)
    return original


def _baseline(lookup: FlagLookup, what: str, error: Exception) -> Choice:
    logger.warning("%s: %s, training with the baseline: %s", lookup.name, what, error)
    return Choice(problem=f"{type(error).__name__}: {error}")


def _check(overrides: Mapping[str, Any]) -> None:
    """Raises CannotCarryError for what no form of a job can carry."""
    if "framework" in overrides and "image" not in overrides:
        raise CannotCarryError("the flag names another framework without its image")
    if compiler_named(overrides.get("compiler")).own_image:
        raise CannotCarryError(
            f"{overrides['compiler']} changes image and launcher together: let a registered "
            "schedule train this workload"
        )


def hyperparameters(
    job_values: Mapping[str, Any] | None,
    choice: Choice,
    names: Mapping[str, str],
    *,
    script: object,
) -> dict[str, Any]:
    """The script's values with the flag's laid over; ``names`` are the script's own for ours.

    ``script`` is the job's entry point: the launcher reads what a shell would change encoded.
    """
    own = dict(job_values or {})
    changes = {key: choice.overrides[key] for key in SCRIPT_ARGUMENTS if key in choice.overrides}
    for key in changes:
        other = [name for name in ALIASES.get(key, ()) if name in own]
        if other and key not in own and key not in names:
            raise CannotCarryError(
                f"the hyperparameter {other[0]} looks like {key}: "
                f"pass names={{{key!r}: {other[0]!r}}} if it is"
            )
    renamed = {names.get(key, key): value for key, value in changes.items()}
    candidates = _readable(choice.overrides.get("hyperparameters", {}), script)
    merged = {**own, **candidates, "arm": choice.arm, **renamed}
    return _limited(merged, MOST_HYPERPARAMETERS, "hyperparameters")


def _readable(values: Mapping[str, Any], script: object) -> dict[str, Any]:
    """The candidate's hyperparameters in words that survive the container's toolkit."""
    launcher = isinstance(script, str) and PurePosixPath(script).name == naming.LAUNCHER
    readable = {key: for_launcher(value) if launcher else value for key, value in values.items()}
    if PARTITIONING in values:
        readable[PARTITIONING] = _partitioning(values[PARTITIONING])
    for key, value in readable.items():
        if not survives(value):
            raise CannotCarryError(
                f"a shell in the training container would change the hyperparameter {key}: "
                f"start the script with {naming.LAUNCHER}, which passes on any text"
            )
    return readable


def _partitioning(value: object) -> dict[str, Any]:
    """The settings of the model-parallel library, which reads an object."""
    try:
        settings = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise CannotCarryError(f"{PARTITIONING} of the flag is not a JSON object in quotes")
    return settings


def machines(overrides: Mapping[str, Any], groups: object) -> dict[str, Any]:
    """The flag's instance type and count; ``groups`` are the instance groups of the job."""
    changes = {
        key: overrides[key] for key in ("instance_type", "instance_count") if key in overrides
    }
    if changes and groups:
        raise CannotCarryError("the job has instance groups, the flag one kind of instance")
    return changes


def script(name: str, entry_point: str, source: object) -> str:
    """The candidate's entry point, where it is known to be in the job's source.

    ``source`` is a local folder, or the place of the bundle that was registered.
    """
    if isinstance(source, str) and f"/{naming.WORKLOADS_PREFIX}{name}/source/" in source:
        return entry_point
    if isinstance(source, str) and "://" not in source and Path(source, entry_point).is_file():
        return entry_point
    raise CannotCarryError(
        f"the candidate starts {entry_point}, which is not in the job's source folder ({source})"
    )


def field_of(settings: Any, key: str) -> Any:
    """One field of an object of the SDK's, or of a mapping."""
    return settings.get(key) if isinstance(settings, Mapping) else getattr(settings, key, None)


def _marked(job: Job, form: Form, choice: Choice, lookup: FlagLookup) -> Job:
    """The job with tags and variables that say its arm."""
    return {
        **job,
        form.tags: _tags(job.get(form.tags), form, choice, lookup),
        form.environment: _variables(job, form, choice, lookup.deployment),
    }


def _tags(
    team: Mapping[str, str] | Sequence[Any] | None, form: Form, choice: Choice, lookup: FlagLookup
) -> list[Any]:
    """The team's tags as a list, ours last; entries that are not ours stay as they are.

    By ours the job's end is recorded in its deployment's ledger (stacks/train).
    """
    own = {
        naming.TAG_WORKLOAD: lookup.name,
        naming.TAG_STAGE: naming.TEAM_STAGE,
        naming.TAG_DEPLOYMENT: lookup.deployment,
        naming.TAG_ARM: choice.arm,
        **({naming.TAG_DECISION: choice.decision_id} if choice.decision_id else {}),
    }
    key, value = form.tag_keys
    if isinstance(team, Mapping):
        team = [{key: name, value: text} for name, text in team.items()]
    kept = [tag for tag in team or () if field_of(tag, key) not in own]
    merged = [*kept, *({key: name, value: text} for name, text in own.items())]
    if len(merged) > MOST_TAGS:
        raise CannotCarryError(f"a job may have {MOST_TAGS} tags, with ours it has {len(merged)}")
    return merged


def _variables(job: Job, form: Form, choice: Choice, stage: str) -> dict[str, Any]:
    """The job's variables: its arm, so that its script need not read the flag again."""
    image = form.image(job)
    image_variable = {"COMPILEGATE_IMAGE": image} if isinstance(image, str) else {}
    own = {"COMPILEGATE_ARM": choice.arm, "COMPILEGATE_STAGE": stage, **image_variable}
    merged = {**(job.get(form.environment) or {}), **own}
    return _limited(merged, MOST_VARIABLES, "environment variables")


def _limited(values: dict[str, Any], most: int, what: str) -> dict[str, Any]:
    """Raises CannotCarryError for more values than the service takes."""
    if len(values) > most:
        raise CannotCarryError(f"a job may have {most} {what}, with ours it has {len(values)}")
    return values
