"""What every form of a team's job has in common: hyperparameters, tags, variables, and the rules.

A job that carries a flag is told what a job of Compilegate's own is told
(domain/request/hyperparameters.py), so that the launcher and the recorder read the same words.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from compilegate.domain import naming
from compilegate.domain.argument_text import for_launcher, survives
from compilegate.domain.compilers import has_own_image
from compilegate.domain.production.arm import check_overrides
from compilegate.domain.production.next_arm import REFRESH_EVERY
from compilegate.domain.request.hyperparameters import partitioning
from compilegate.domain.workload.names import PARTITIONING
from compilegate.flags.reading import Choice, choose, stage_name

logger = logging.getLogger("compilegate.flags")

# Overrides that reach the script as hyperparameters.
SCRIPT_ARGUMENTS = ("compiler", "compile_mode", "precision", "batch_size", "learning_rate")
# What scripts call two of them; one of these beside ours would leave it open which one counts.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "batch_size": (
        "per_device_train_batch_size", "train_batch_size", "batch-size", "train-batch-size", "bs",
    ),
    "learning_rate": ("lr", "learning-rate"),
}  # fmt: skip
# CreateTrainingJob takes no more (its service model).
MOST_HYPERPARAMETERS, MOST_VARIABLES, MOST_TAGS = 100, 100, 50


class CannotCarryError(Exception):
    """This job cannot be changed as the flag says; its message says why and what would help."""


def check(overrides: Mapping[str, Any]) -> None:
    """Raises CannotCarryError or InvalidInputError for what no form of a job can carry."""
    check_overrides(overrides)
    if "framework" in overrides and "image" not in overrides:
        raise CannotCarryError("the flag names another framework without its image")
    if has_own_image(overrides.get("compiler")):
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
    return limited(merged, MOST_HYPERPARAMETERS, "hyperparameters")


def _readable(values: Mapping[str, Any], script: object) -> dict[str, Any]:
    """The candidate's hyperparameters in words that survive the container's toolkit."""
    launcher = isinstance(script, str) and PurePosixPath(script).name == naming.LAUNCHER
    readable = {key: for_launcher(value) if launcher else value for key, value in values.items()}
    if PARTITIONING in values:
        readable[PARTITIONING] = partitioning(values[PARTITIONING])
    for key, value in readable.items():
        if not survives(value):
            raise CannotCarryError(
                f"a shell in the training container would change the hyperparameter {key}: "
                f"start the script with {naming.LAUNCHER}, which passes on any text"
            )
    return readable


def tags(name: str, choice: Choice, *, stage: str) -> dict[str, str]:
    """How the job's end finds its way to its deployment's ledger (stacks/train)."""
    decision = {naming.TAG_DECISION: choice.decision_id} if choice.decision_id else {}
    return {
        naming.TAG_WORKLOAD: name,
        naming.TAG_STAGE: naming.TEAM_STAGE,
        naming.TAG_DEPLOYMENT: stage,
        naming.TAG_ARM: choice.arm,
        **decision,
    }


def tag_list(
    tags: Mapping[str, str] | Sequence[Any] | None,
    own: Mapping[str, str],
    key: str = "Key",
    value: str = "Value",
) -> list[Any]:
    """The team's tags as a list, ours last; entries that are not ours stay as they are."""
    if isinstance(tags, Mapping):
        tags = [{key: name, value: text} for name, text in tags.items()]
    kept = [tag for tag in tags or () if _key_of(tag, key) not in own]
    merged = [*kept, *({key: name, value: text} for name, text in own.items())]
    if len(merged) > MOST_TAGS:
        raise CannotCarryError(f"a job may have {MOST_TAGS} tags, with ours it has {len(merged)}")
    return merged


def variables(
    environment: Mapping[str, Any] | None, choice: Choice, *, stage: str, image: Any
) -> dict[str, Any]:
    """The job's variables: its arm, so that its script need not ask the flag once more."""
    image_variable = {"COMPILEGATE_IMAGE": image} if isinstance(image, str) else {}
    own = {"COMPILEGATE_ARM": choice.arm, "COMPILEGATE_STAGE": stage, **image_variable}
    return limited({**(environment or {}), **own}, MOST_VARIABLES, "environment variables")


def limited(values: dict[str, Any], most: int, what: str) -> dict[str, Any]:
    """Raises CannotCarryError for more values than the service takes."""
    if len(values) > most:
        raise CannotCarryError(f"a job may have {most} {what}, with ours it has {len(values)}")
    return values


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


def _key_of(tag: Any, key: str) -> Any:
    return tag.get(key) if isinstance(tag, Mapping) else getattr(tag, key, None)


Job = dict[str, Any]


@dataclass(frozen=True)
class FlagLookup:
    """Whose flag, and how its words are called in the team's script."""

    name: str
    stage: str | None = None
    client: Any = None
    names: Mapping[str, str] = field(default_factory=dict)
    chance: Callable[[], float] = random.SystemRandom().random


class Form(Protocol):
    """One way to write a job down; both raise whatever they like."""

    def overridden(self, job: Job, choice: Choice, lookup: FlagLookup) -> Job:
        """The job with the flag's changes."""
        ...

    def marked(self, job: Job, choice: Choice, lookup: FlagLookup) -> Job:
        """The job with tags and variables that say its arm."""
        ...


def carry(job: Mapping[str, Any], form: Form, lookup: FlagLookup) -> Job:
    """The job as production should run it today; the one that was given where anything fails."""
    original = dict(job)
    try:
        choice = choose(lookup.name, stage=lookup.stage, client=lookup.client)
    except Exception as error:  # noqa: BLE001 - a run never fails because of a flag
        choice = _instead(lookup, "its flag cannot be asked for", error)
    if choice.watched and lookup.chance() * REFRESH_EVERY < 1:
        logger.info(
            "%s: a baseline run, as one in %d is during a probation", lookup.name, REFRESH_EVERY
        )
        choice = Choice(decision_id=choice.decision_id)
    if choice.overrides:
        try:
            check(choice.overrides)
            return form.marked(form.overridden(original, choice, lookup), choice, lookup)
        except Exception as error:  # noqa: BLE001 - as above
            choice = _instead(lookup, "its job cannot carry the flag", error)
    try:
        return form.marked(original, choice, lookup)
    except Exception as error:  # noqa: BLE001 - as above
        _instead(lookup, "its run will not be recorded", error)
    return original


def deployment(lookup: FlagLookup) -> str:
    """The stage whose flag was lookup."""
    return stage_name(lookup.stage)


def _instead(lookup: FlagLookup, what: str, error: Exception) -> Choice:
    logger.warning("%s: %s, training with the baseline: %s", lookup.name, what, error)
    return Choice(problem=f"{type(error).__name__}: {error}")
