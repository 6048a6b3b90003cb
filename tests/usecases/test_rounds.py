"""JudgeArms, round by round: what it takes in, what it asks for, what a repetition does."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.planning import rounds
from compilegate.domain.trial.judge_round import InfrastructureFailureError
from compilegate.usecases.records import to_json
from tests.usecases.trial_builder import (
    TRIAL,
    asks_full_runs,
    asks_speed,
    call_judge,
    ended,
    evidence,
    first_round,
    load,
    outcome,
    own_stop,
    put_output,
    quality_output,
    says,
)

STOPPED = {"reason": "the job was stopped"}


def names(answer: dict[str, Any]) -> list[str]:
    return [run["run"] for run in answer["runs"]]


def test_a_script_that_ignores_its_seed_is_invalid(services: Any) -> None:
    first_round(services)
    done = outcome("q1b18")
    put_output(services, done["job"], quality_output(17))
    answer = call_judge(services, 2, [done], says("promote"))

    assert ("invalid", "none") == (answer["verdict"], answer["next_stage"])


def test_figures_that_break_the_contract_are_refused_again_and_never_become_evidence(
    services: Any,
) -> None:
    first_round(services)
    done = outcome("q1b17")
    put_output(services, done["job"], quality_output(17, metric=1e300))

    for _ in range(2):
        assert "invalid" == call_judge(services, 2, [done], says("promote"))["verdict"]
        message = load(services, "decision")["reasons"][0]["message"]
        assert f"{done['job']}.metric: is out of range" in message
        assert [[], []] == [arm["runs"] for arm in evidence(services)["arms"]]


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
        asked = call_judge(services, number, [lost], asks_speed())
        assert ("continue", [f"s{number}"]) == (asked["verdict"], names(asked))
        assert number + 1 == asked["round"]
    with pytest.raises(
        InfrastructureFailureError,
        match=rf"^{outcome('s2')['job']} could not run: CapacityError: none left$",
    ):
        call_judge(services, 3, [lost_to_the_cloud("s2")], asks_speed())

    assert [1, 2, 3] == evidence(services)["plan"]["lost_rounds"]
    with pytest.raises(NotFoundError):
        load(services, "decision")


def test_rounds_that_only_waited_for_the_quota_fail_no_trial_and_are_none_of_its_rounds(
    services: Any,
) -> None:
    most = rounds.max_rounds(1)
    first_round(services)
    for number in range(1, most + 3):
        waited = {**lost_to_the_cloud(f"s{number - 1}"), "waited": True}
        asked = call_judge(services, number, [waited], asks_speed())
        assert ("continue", [f"s{number}"]) == (asked["verdict"], names(asked))

    plan = evidence(services)["plan"]
    assert [*range(1, most + 3)] == plan["waited_rounds"]
    assert "lost_rounds" not in plan
    both = [{**lost_to_the_cloud(f"s{most + 2}"), "waited": True}, lost_to_the_cloud("s999")]
    call_judge(services, most + 3, both, asks_speed())
    assert [most + 3] == evidence(services)["plan"]["lost_rounds"]


def test_a_run_without_an_explanation_is_looked_up(services: Any) -> None:
    first_round(services)
    crashed, gone = outcome("q1b17", "Unknown"), outcome("q1b18", "Unknown")
    services.jobs.add(crashed["job"], "Failed", 1000.0, 4600.0)
    services.jobs.descriptions[crashed["job"]]["FailureReason"] = "AlgorithmError: NaN"
    call_judge(services, 2, [crashed, gone], asks_full_runs("compile 18"))

    (run,) = evidence(services)["arms"][1]["runs"]
    assert ("AlgorithmError: NaN", [2]) == (
        run["reason"], evidence(services)["plan"]["lost_rounds"]
    )  # fmt: skip


def test_what_the_trial_stopped_itself_is_no_result_and_a_foreign_stop_is_a_failure(
    services: Any,
) -> None:
    first_round(services)
    done = outcome("q1b17")
    put_output(services, done["job"], quality_output(17))
    own, foreign = own_stop(services, "q1b18"), outcome("q1a17", "Stopped", **STOPPED)
    answer = call_judge(services, 2, [done, own], asks_full_runs("compile 18"))

    assert ["q2b18"] == names(answer)
    assert [0, 1] == [len(arm["runs"]) for arm in evidence(services)["arms"]]
    with pytest.raises(InfrastructureFailureError, match=rf"by this trial: {foreign['job']}\. Fix"):
        call_judge(services, 2, [done, own, foreign], asks_full_runs("compile 18"))


def test_an_overwritten_output_makes_the_trial_invalid_with_a_reason_of_its_own(
    services: Any,
) -> None:
    (run,) = first_round(services)["runs"]
    done = ended(services, run["run"])
    key = naming.job_output_key("bert-docs", TRIAL, done["job"])
    services.store.overwritten.add(f"s3://{services.store.bucket}/{key}")
    answer = call_judge(services, 1, [done], says("promote"))

    assert ("invalid", "none") == (answer["verdict"], answer["next_stage"])
    (reason,) = load(services, "decision")["reasons"]
    assert "evidence_overwritten" == reason["code"]
    assert key in reason["message"]
