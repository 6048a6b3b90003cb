"""Runs that ended without a result of their arm: how often a trial bears with that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compilegate.domain.errors import CompilegateError
from compilegate.usecases.outcome import Outcome, could_not_run, was_stopped
from compilegate.usecases.stop_jobs import stopped_by_trial
from compilegate.usecases.trial import OpenTrial

# Rounds in which the cloud may fail a trial; what they lacked is asked for again.
LOST_ROUNDS = 2


class InfrastructureFailureError(CompilegateError):
    """The cloud could not run a job; that says nothing about the arm, so the trial ends."""


def note_lost_round(
    outcomes: Sequence[Outcome], document: dict[str, Any], round_number: int
) -> None:
    """Remember a round in which the cloud could not run a job; repeating it adds nothing."""
    lost = set(document["plan"].get("lost_rounds", ()))
    if any(could_not_run(outcome) for outcome in outcomes):
        document["plan"]["lost_rounds"] = sorted({*lost, round_number})


def refuse_lost_rounds(outcomes: Sequence[Outcome], document: dict[str, Any]) -> None:
    """Raise InfrastructureFailureError where the cloud has failed the trial too often."""
    if len(document["plan"].get("lost_rounds", ())) <= LOST_ROUNDS:
        return
    for outcome in outcomes:
        if could_not_run(outcome):
            raise InfrastructureFailureError(
                f"{outcome['job']} could not run: {outcome.get('reason')}"
            )


def refuse_foreign_stops(outcomes: Sequence[Outcome], opened: OpenTrial) -> None:
    """Raise InfrastructureFailureError for a job that was stopped, and not by this trial."""
    foreign = [
        str(outcome["job"])
        for outcome in outcomes
        if was_stopped(outcome)
        and not stopped_by_trial(str(outcome["job"]), opened.trial, services=opened.services)
    ]
    if foreign:
        raise InfrastructureFailureError(
            f"stopped before the end, not by this trial: {', '.join(foreign)}"
        )
