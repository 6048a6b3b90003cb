"""JudgeArms, round by round: what it takes in, what it asks for, what a repetition does."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.trial.judge_round import InfrastructureFailureError
from compilegate.usecases.records import to_json
from tests.usecases.trial_builder import (
    TRIAL,
    asks_full_runs,
    asks_speed,
    call_judge,
    evidence,
    first_round,
    load,
    outcome,
)


def test_of_a_round_whose_requests_the_service_would_not_all_take_none_is_written(
    services: Any,
) -> None:
    first_round(services)
    plan = load(services, "plan")
    plan["arms"][1]["image"] = "i" * 256
    services.store.put(naming.record_key("bert-docs", TRIAL, "plan"), to_json(plan))
    before = [*services.store.keys("experiments/")]

    with pytest.raises(InvalidInputError, match="255"):
        call_judge(services, 1, [], asks_full_runs("baseline 17", "compile 17"))
    assert before == [
        key for key in services.store.keys("experiments/") if "evidence.json" not in key
    ]


def lost_to_the_cloud(run: str) -> dict[str, Any]:
    return outcome(run, "Failed", infrastructure=True, reason="CapacityError: none left")


def test_a_third_round_lost_to_the_cloud_fails_the_trial_and_is_no_verdict(services: Any) -> None:
    first_round(services)
    for number in (1, 2):
        lost = lost_to_the_cloud(f"s{number - 1}")
        assert number + 1 == call_judge(services, number, [lost], asks_speed())["round"]
    with pytest.raises(
        InfrastructureFailureError,
        match=rf"^{outcome('s2')['job']} could not run: CapacityError: none left$",
    ):
        call_judge(services, 3, [lost_to_the_cloud("s2")], asks_speed())

    assert [1, 2, 3] == evidence(services)["plan"]["lost_rounds"]
    with pytest.raises(NotFoundError):
        load(services, "decision")
