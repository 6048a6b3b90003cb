"""An output that was written again: an invalid trial, a production run without evidence."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.usecases.trial.judge_arms import judge_arms
from tests import fakes
from tests.usecases.trial_builder import (
    EVENT,
    SOUND,
    TRIAL,
    asks_speed,
    call_judge,
    ended,
    load,
    outcome,
    plan_trial,
    put_spec,
)


@pytest.fixture
def services() -> Any:
    made = fakes.services("prod")
    put_spec(made, SOUND)
    plan_trial(EVENT, services=made)
    return made


def test_an_overwritten_output_makes_the_trial_invalid_with_a_reason_of_its_own(
    services: Any,
) -> None:
    (run,) = call_judge(services, 0, [], asks_speed())["runs"]
    ended(services, run["run"])
    key = naming.job_output_key("bert-docs", TRIAL, outcome(run["run"])["job"])
    services.store.overwritten.add(f"s3://{services.store.bucket}/{key}")
    answer = judge_arms({**EVENT, "round": 1, "runs": [outcome(run["run"])]}, services=services)

    assert ("invalid", "none") == (answer["verdict"], answer["next_stage"])
    (reason,) = load(services, "decision")["reasons"]
    assert "evidence_overwritten" == reason["code"]
    assert key in reason["message"]
