"""JudgeArms, round by round: what it takes in, what it asks for, what a repetition does."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.naming import TAG_EXECUTION, parse_run
from compilegate.domain.planning import rounds
from compilegate.domain.trial.jobs import EndedJob
from compilegate.domain.trial.judge_round import InfrastructureFailureError
from compilegate.domain.workload.quality import Metric
from compilegate.usecases.trial import judge_arms
from tests.domain.workload_builder import COMPILE, SOUND, change
from tests.usecases.trial_builder import (
    EVENT,
    asks_full_runs,
    asks_speed,
    call_judge,
    evidence,
    first_round,
    load,
    outcome,
    own_stop,
    put_output,
    put_spec,
    quality_output,
    says,
    speed_output,
)

LARGER = dataclasses.replace(COMPILE, name="compile-b48", batch_size=48)
STOPPED = {"reason": "the job was stopped"}


def names(answer: dict[str, Any]) -> list[str]:
    return [run["run"] for run in answer["runs"]]


def requests(services: Any, answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(services.store.get(run["request_key"])) for run in answer["runs"]]


def test_full_runs_are_asked_for_with_the_seeds_the_judge_chose(services: Any) -> None:
    first_round(services)
    asked = asks_full_runs("compile 4294967295", "baseline 0")
    answer = call_judge(services, 3, [], asked)

    assert ("quality", 4) == (answer["next_stage"], answer["round"])
    assert ["q3b4294967295", "q3a0"] == names(answer)
    assert [False, False] == ["control" in run for run in answer["runs"]]
    tags = [{one["Key"]: one["Value"] for one in r["Tags"]} for r in requests(services, answer)]
    assert [EVENT["execution"]] * 2 == [one[TAG_EXECUTION] for one in tags]
    parameters = [request["HyperParameters"] for request in requests(services, answer)]
    assert [("4294967295", '"compile"'), ("0", '"baseline"')] == [
        (one["seed"], one["arm"]) for one in parameters
    ]


def test_replicates_count_the_full_runs_of_an_arm(services: Any) -> None:
    first_round(services)
    done = outcome("q1b17")
    put_output(services, done["job"], quality_output(17))
    asked = asks_full_runs("compile 18", "compile 19", "baseline 17")
    answer = call_judge(services, 2, [done], asked)

    values = [r["HyperParameters"]["replicate"] for r in requests(services, answer)]
    assert ["1", "2", "0"] == values


def test_what_one_candidates_crash_stopped_is_asked_for_again_under_a_new_name(
    services: Any,
) -> None:
    put_spec(services, dataclasses.replace(SOUND, candidates=(COMPILE, LARGER)))
    first_round(services)
    asked = asks_full_runs("compile 17", "compile-b48 17", "baseline 17")
    first = call_judge(services, 1, [], asked)
    ended = [
        outcome("q1b17", "Failed", reason="CUDA out of memory"),
        own_stop(services, "q1c17"),
        own_stop(services, "q1a17"),
    ]
    again = call_judge(services, 2, ended, asks_full_runs("compile-b48 17", "baseline 17"))

    assert ["q2c17", "q2a17"] == names(again)
    bases = [run["job_base"] for answer in (first, again) for run in answer["runs"]]
    assert len(bases) == len(set(bases))
    assert [0, 1, 0] == [len(arm["runs"]) for arm in evidence(services)["arms"]]


def test_no_request_is_stored_where_one_of_them_would_be_refused(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_round(services)
    stored = dict(services.store.objects)
    seen: list[str] = []

    def check(request: dict[str, Any]) -> None:
        seen.append(request["TrainingJobName"])
        if len(seen) > 1:
            raise InvalidInputError("is too long")

    monkeypatch.setattr(judge_arms, "request_limits", lambda: SimpleNamespace(check=check))
    with pytest.raises(InvalidInputError, match="is too long"):
        call_judge(services, 1, [], asks_full_runs("compile 17", "baseline 17"))

    assert [] == [
        key for key in services.store.objects if "/requests/" in key and key not in stored
    ]


def test_a_repeated_call_counts_the_same_job_and_its_cost_once(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_round(services)
    done = outcome("s0")
    put_output(services, done["job"], speed_output(range(3), speedup=1.5))
    services.jobs.add(done["job"], "Completed", 1000.0, 4600.0)
    first = call_judge(services, 1, [done], asks_full_runs("compile 17"))
    spent = evidence(services)["plan"]["spent_usd"]
    second = call_judge(services, 1, [done], asks_full_runs("compile 17"))
    described: list[str] = []
    all_of = services.jobs.describe_all
    monkeypatch.setattr(services.jobs, "describe_all", lambda n: all_of(described.extend(n) or n))
    call_judge(services, 2, [], says("promote"))

    assert first == second
    assert [] == described  # the price of a job that left its runs is final
    assert [3, 3] == [len(arm["runs"]) for arm in evidence(services)["arms"]]
    assert load(services, "plan")["arms"][0]["usd_per_hour"] == pytest.approx(spent)
    assert spent == evidence(services)["plan"]["spent_usd"]


def test_a_script_that_ignores_its_seed_is_invalid(services: Any) -> None:
    first_round(services)
    done = outcome("q1b18")
    put_output(services, done["job"], quality_output(17))
    answer = call_judge(services, 2, [done], says("promote"))

    assert ("invalid", "none") == (answer["verdict"], answer["next_stage"])


@pytest.mark.parametrize("run", ["q1b17", "s0"])
def test_a_clock_that_cannot_be_right_is_invalid_and_says_so(run: str, services: Any) -> None:
    first_round(services)
    done = outcome(run)
    full = run.startswith("q")
    body = quality_output(17, wall=1e-300) if full else speed_output(range(40), speedup=1.5)
    put_output(services, done["job"], body)
    services.jobs.add(done["job"], "Completed", 0.0, 1.0)
    services.jobs.descriptions[done["job"]]["TrainingTimeInSeconds"] = 1
    answer = call_judge(services, 2, [done], says("promote"))

    assert "invalid" == answer["verdict"]
    assert ["clock_implausible"] == [one["code"] for one in load(services, "decision")["reasons"]]


def test_a_full_run_is_recorded_with_its_work_and_the_services_time_of_its_job(
    services: Any,
) -> None:
    first_round(services)
    done = outcome("q1b17")
    put_output(services, done["job"], quality_output(17))
    services.jobs.add(done["job"], "Completed", 0.0, 90.0)
    training = {
        "Status": "Training",
        "StartTime": datetime(2026, 11, 20, tzinfo=UTC),
        "EndTime": datetime(2026, 11, 20, 0, 1, 15, tzinfo=UTC),
    }
    services.jobs.descriptions[done["job"]]["SecondaryStatusTransitions"] = [training]
    call_judge(services, 2, [done], says("promote"))
    (run,) = [run for arm in evidence(services)["arms"] for run in arm["runs"] if "work" in run]

    assert (75.0, 20, 32.0) == (
        run["job_seconds"], run["work"]["steps"], run["work"]["samples_per_step"],
    )  # fmt: skip


def test_guardrails_and_signals_and_their_values_reach_the_judge(services: Any) -> None:
    others = {"guardrails": (Metric("top5", "maximize", 0.01),),
              "signals": (Metric("gap", "minimize", 0.1),)}  # fmt: skip
    quality = dataclasses.replace(SOUND.quality, **others)
    put_spec(services, change(SOUND, quality=quality))
    first_round(services)
    done, values = outcome("q1b17"), {"top5": 0.97, "gap": 0.2}
    put_output(services, done["job"], quality_output(17, metrics={"eval_accuracy": 0.91, **values}))
    call_judge(services, 2, [done], says("promote"))
    shown = read_evidence(evidence(services))
    (run,) = shown.candidates[0].quality

    assert quality == shown.quality
    assert values == run.record["metrics"]


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


def lost_to_the_cloud(run: str) -> dict[str, Any]:
    return outcome(run, "Failed", infrastructure=True, reason="CapacityError: none left")


@pytest.mark.parametrize("lost", ["to the cloud", "by hand"])
def test_what_was_not_run_does_not_matter_once_the_trial_is_decided(
    services: Any, lost: str
) -> None:
    first_round(services)
    for round_number in (1, 2):
        call_judge(services, round_number, [lost_to_the_cloud("s0")], asks_speed())
    done = outcome("q2b17")
    put_output(services, done["job"], quality_output(17))
    stopped = outcome("q2b18", "Stopped", **STOPPED)
    other = stopped if lost == "by hand" else lost_to_the_cloud("q2b18")

    assert "stay_off" == call_judge(services, 3, [done, other], says("stay_off"))["verdict"]


def test_a_third_round_lost_to_the_cloud_fails_the_trial_and_is_no_verdict(services: Any) -> None:
    first_round(services)
    for number in (1, 2):
        lost = lost_to_the_cloud(f"s{number - 1}")
        asked = call_judge(services, number, [lost], asks_speed())
        assert ("continue", [f"s{number}"]) == (asked["verdict"], names(asked))
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


def test_a_spot_job_that_got_no_capacity_is_asked_for_again(services: Any) -> None:
    first_round(services)
    described = {"TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxWaitTimeExceeded"}
    job = str(outcome("s0")["job"])
    lost = EndedJob.failed(parse_run("s0"), job, json.dumps(described)).to_outcome()

    assert "continue" == call_judge(services, 1, [lost], asks_speed())["verdict"]
    assert [1] == evidence(services)["plan"]["lost_rounds"]


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
