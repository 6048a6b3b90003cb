"""Lays a flag over a team's job, or leaves the job as it is and says why.

During a probation now and then a job is left as it is, as TRAIN does it (production/next_arm.py):
without baselines of today, what happens to the data would be blamed on the candidate. Here it is
by chance, because no run knows of those before it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from compilegate.domain.production.next_arm import REFRESH_EVERY
from compilegate.flags.overlay import check, logger
from compilegate.flags.reading import Choice, choose, stage_name

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
