"""Production that a team's own pipeline launches: found to be worse, turned off, told truly."""

from __future__ import annotations

from typing import Any

from tests.domain.evidence_builder import CENTRE
from tests.usecases.production_builder import (
    TWO_MARGINS,
    entries,
    flag_of,
    night,
    promote,
)

WORSE = CENTRE - TWO_MARGINS


def team_night(services: Any, number: int, arm: str = "compile", **changed: Any) -> dict[str, Any]:
    return night(services, number, arm, launched_by="team", why="team", **changed)


def looks(services: Any) -> list[Any]:
    return [entry for entry in entries(services) if entry["kind"] == "watch"]


def test_a_regression_in_a_teams_jobs_is_turned_off_although_none_was_asked_for(
    services: Any,
) -> None:
    promote(services)
    for number in range(1, 31):
        arm = "compile" if number % 6 else "baseline"
        answer = team_night(services, number, arm, **({"metric": WORSE} if number % 6 else {}))
        if not flag_of(services).enabled:
            break

    assert ("revert", "reverted") == (answer["verdict"], flag_of(services).state)
    assert ["alarm", "revert"] == [look["tell"] for look in looks(services) if look["tell"]]


def alarm(services: Any, *launched_by: str) -> str:
    promote(services)
    for number, who in enumerate(launched_by, 1):
        metric = WORSE if number == len(launched_by) else CENTRE
        answer = night(services, number, launched_by=who, metric=metric)
    assert "alarm" == looks(services)[-1]["tell"]
    return str(answer["message"])


def test_runs_of_train_take_turns(services: Any) -> None:
    message = alarm(services, "train", "train")

    assert "three runs each" in message
    assert "your pipeline" not in message


def test_of_a_teams_jobs_nobody_says_that_they_take_turns(services: Any) -> None:
    message = alarm(services, "team", "team")

    assert "take turns" not in message
    assert "your pipeline launches" in message
    assert "may take 18 jobs. `compilegate train bert-docs` starts the next" in message


def test_where_both_launch_jobs_both_are_told_of(services: Any) -> None:
    message = alarm(services, "train", "team")

    assert "TRAIN's runs" in message
    assert "every job that a team launches counts too" in message
