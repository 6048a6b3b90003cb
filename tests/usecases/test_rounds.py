"""JudgeArms, round by round: what it takes in, what it asks for, what a repetition does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.usecases.judge_arms import judge_arms
from compilegate.usecases.take_in import InfrastructureFailureError
from tests.usecases.trial_builder import (
    EVENT,
    TRIAL,
    first_round,
    outcome,
    put_output,
    speed_output,
)


def test_the_first_round_asks_for_one_speed_job_with_a_complete_request(services: Any) -> None:
    answer = first_round(services)

    assert ("continue", "speed", 1, 1) == (
        answer["verdict"], answer["next_stage"], answer["round"], len(answer["runs"])
    )  # fmt: skip
    request = json.loads(services.store.get(answer["runs"][0]["request_key"]))
    assert answer["runs"][0]["job_base"] == request["TrainingJobName"]


def test_a_fast_candidate_gets_full_runs_of_both_arms(services: Any) -> None:
    first_round(services)
    done = outcome("s0")
    put_output(services, done["job"], speed_output(range(3), speedup=1.5))
    answer = judge_arms({**EVENT, "round": 1, "runs": [done]}, services=services)

    assert "quality" == answer["next_stage"]
    assert {f"q1{arm}{seed}" for arm in "ab" for seed in (17, 18, 19)} == {
        run["run"] for run in answer["runs"]
    }


def test_a_repeated_call_takes_the_same_job_in_once(services: Any) -> None:
    first_round(services)
    done = outcome("s0")
    put_output(services, done["job"], speed_output(range(3), speedup=1.5))
    event = {**EVENT, "round": 1, "runs": [done]}
    first = judge_arms(event, services=services)
    second = judge_arms(event, services=services)
    evidence = json.loads(services.store.get(naming.record_key("bert-docs", TRIAL, "evidence")))

    assert first == second
    assert [3, 3] == [len(arm["runs"]) for arm in evidence["arms"]]


def test_a_completed_speed_job_without_evidence_is_invalid(services: Any) -> None:
    first_round(services)
    answer = judge_arms({**EVENT, "round": 1, "runs": [outcome("s0")]}, services=services)

    assert ("invalid", "none") == (answer["verdict"], answer["next_stage"])


def test_what_the_cloud_could_not_run_ends_the_trial_without_verdict(services: Any) -> None:
    first_round(services)
    failed = outcome("s0", "Failed", infrastructure=True, reason="CapacityError: none left")

    with pytest.raises(InfrastructureFailureError, match="CapacityError"):
        judge_arms({**EVENT, "round": 1, "runs": [failed]}, services=services)


def test_a_job_stopped_by_hand_is_no_verdict(services: Any) -> None:
    first_round(services)
    stopped = outcome("s0", "Stopped", reason="the job was stopped")

    with pytest.raises(InfrastructureFailureError, match="not by this trial"):
        judge_arms({**EVENT, "round": 1, "runs": [stopped]}, services=services)


def test_spending_counts_what_jobs_really_took_and_the_cap_holds(services: Any) -> None:
    first_round(services)
    plan = json.loads(services.store.get(naming.record_key("bert-docs", TRIAL, "plan")))
    done = outcome("s0")
    put_output(services, done["job"], speed_output(range(3), speedup=1.5))
    seconds = round((plan["max_trial_usd"] - 1) / plan["arms"][0]["usd_per_hour"] * 3600)
    services.jobs.descriptions[done["job"]] = {"BillableTimeInSeconds": seconds}
    answer = judge_arms({**EVENT, "round": 1, "runs": [done]}, services=services)
    decision = json.loads(services.store.get(answer["decision_key"]))

    assert ("inconclusive", "trial_over_budget") == (
        answer["verdict"],
        decision["reasons"][0]["code"],
    )
