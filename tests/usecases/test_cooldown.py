"""A trial that is asked for soon after a revert is refused before it costs anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain.production.promotion import DAY_SECONDS
from compilegate.usecases.trial.plan_trial import plan_trial
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import promote, record, watch
from tests.usecases.trial_builder import EVENT, put_spec

NEW = {**EVENT, "trial": "newer123"}


@pytest.fixture
def reverted(services: Any) -> Any:
    promote(services)
    for number in (1, 2):
        run = record(services, number, finished=False, metric=None)
        watch(services, run.run)
    return services


def test_it_is_refused_and_says_until_when(reverted: Any) -> None:
    answer = plan_trial(NEW, services=reverted)
    decision = json.loads(reverted.store.get(answer["decision_key"]))

    assert ("inconclusive", None) == (answer["verdict"], answer["plan_key"])
    assert ("inconclusive", "keep") == (decision["verdict"], decision["flag"]["action"])
    assert ["cooling_down"] == [reason["code"] for reason in decision["reasons"]]


def test_it_is_planned_once_the_time_is_over(reverted: Any) -> None:
    reverted.clock.seconds += 14 * DAY_SECONDS

    assert "continue" == plan_trial(NEW, services=reverted)["verdict"]


def test_a_team_may_do_without_the_wait(reverted: Any) -> None:
    put_spec(reverted, change(SOUND, policy__cooldown_days=0.0))

    assert "continue" == plan_trial(NEW, services=reverted)["verdict"]
