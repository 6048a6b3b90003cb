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
class Asked:
    """Whose flag, and how its words are called in the team's script."""

    name: str
    stage: str | None = None
    client: Any = None
    names: Mapping[str, str] = field(default_factory=dict)
    chance: Callable[[], float] = random.SystemRandom().random


class Form(Protocol):
    """One way to write a job down; both raise whatever they like."""

    def overridden(self, job: Job, choice: Choice, asked: Asked) -> Job:
        """The job with the flag's changes."""
        ...

    def marked(self, job: Job, choice: Choice, asked: Asked) -> Job:
        """The job with tags and variables that say its arm."""
        ...


def carry(job: Mapping[str, Any], form: Form, asked: Asked) -> Job:
    """The job as production should run it today; the one that was given where anything fails."""
    given = dict(job)
    try:
        choice = choose(asked.name, stage=asked.stage, client=asked.client)
    except Exception as error:  # noqa: BLE001 - a run never fails because of a flag
        choice = _instead(asked, "its flag cannot be asked for", error)
    if choice.watched and asked.chance() * REFRESH_EVERY < 1:
        logger.info(
            "%s: a baseline run, as one in %d is during a probation", asked.name, REFRESH_EVERY
        )
        choice = Choice(decision_id=choice.decision_id)
    if choice.overrides:
        try:
            check(choice.overrides)
            return form.marked(form.overridden(given, choice, asked), choice, asked)
        except Exception as error:  # noqa: BLE001 - as above
            choice = _instead(asked, "its job cannot carry the flag", error)
    try:
        return form.marked(given, choice, asked)
    except Exception as error:  # noqa: BLE001 - as above
        _instead(asked, "its run will not be recorded", error)
    return given


def deployment(asked: Asked) -> str:
    """The stage whose flag was asked."""
    return stage_name(asked.stage)


def _instead(asked: Asked, what: str, error: Exception) -> Choice:
    logger.warning("%s: %s, training with the baseline: %s", asked.name, what, error)
    return Choice(problem=f"{type(error).__name__}: {error}")
