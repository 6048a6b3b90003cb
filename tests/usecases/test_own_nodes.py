"""Arms that cannot share the baseline's nodes: a speed job per block and kind of node."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.trial.jobs import STOP_SECONDS
from compilegate.domain.workload.model import Candidate, FactOverrides, Framework, OwnImage
from compilegate.usecases.trial.judge_arms import judge_arms
from tests.domain.workload_builder import COMPILE
from tests.usecases.trial_builder import (
    EVENT,
    TRIAL,
    asked,
    asks_full_runs,
    asks_speed,
    call_judge,
    ended,
    evidence,
    load,
    outcome,
    own_stop,
    planned,
)

HOUR = 3600
BASELINE, COMPILED, OTHER = 0, 1, 2
P4D = Candidate(name="p4d", instance_type="ml.p4d.24xlarge")
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    "candidate",
    [
        {"instance_count": 2},
        {"distribution": "none"},
        {"entry_point": "other.py"},
        {"framework": Framework("pytorch", "2.12.1")},
    ],
)
def test_another_count_launcher_script_or_image_has_nodes_of_its_own(
    candidate: dict[str, Any], services: Any
) -> None:
    own = (OwnImage(framework="pytorch", version="2.12.1", uri=f"{REGISTRY}/own:1"),)
    planned(services, Candidate(name="other", **candidate), facts=FactOverrides({}, own))
    answer = call_judge(services, 0, [], asks_speed("other"))

    assert ["s0a0", "s0b0"] == list(asked(services, answer))


def test_the_arms_of_a_block_come_together_from_several_jobs(services: Any) -> None:
    planned(services, COMPILE, P4D)
    call_judge(services, 0, [], asks_speed("compile", "p4d"))
    outcomes = [ended(services, "s0a0", "baseline", "compile"), ended(services, "s0b0", "p4d")]
    call_judge(services, 1, outcomes, asks_full_runs("compile 17"))

    arms = evidence(services)["arms"]
    assert [[0], [0], [0]] == [[run["block"] for run in arm["runs"]] for arm in arms]
    nodes = [arm["runs"][0]["node"] for arm in arms]
    assert nodes[BASELINE] == nodes[COMPILED] != nodes[OTHER]


def test_every_speed_job_is_paid_at_its_own_clusters_price_also_a_stray_one(services: Any) -> None:
    planned(services, COMPILE, P4D)
    call_judge(services, 0, [], asks_speed("compile", "p4d"))
    outcomes = [
        ended(services, "s0a0", "baseline", "compile", hours=2),
        ended(services, "s0b0", "p4d", hours=1),
    ]
    stray = f"{naming.job_base('bert-docs', TRIAL, 's0b0')}-r1"
    services.jobs.add(stray, "InProgress", started=float(services.clock.seconds) - HOUR)
    call_judge(services, 1, outcomes, asks_full_runs("compile 17"))

    assert "Stopped" == services.jobs.describe(stray)["TrainingJobStatus"]
    rates = [arm["usd_per_hour"] for arm in load(services, "plan")["arms"]]
    assert rates[BASELINE] != rates[OTHER]
    hours = 1 + (HOUR + STOP_SECONDS) / HOUR
    assert evidence(services)["plan"]["spent_usd"] == pytest.approx(
        2 * rates[BASELINE] + hours * rates[OTHER]
    )


def test_a_candidates_own_job_that_fails_is_that_candidates_failure_alone(services: Any) -> None:
    planned(services, COMPILE, P4D)
    call_judge(services, 0, [], asks_speed("compile", "p4d"))
    crash = outcome("s0b0", "Failed", reason="CUDA out of memory")
    call_judge(
        services, 1, [ended(services, "s0a0", "baseline", "compile"), crash],
        asks_full_runs("compile 17"),
    )  # fmt: skip

    runs = [arm["runs"] for arm in evidence(services)["arms"]]
    assert [True, True, False] == [run["finished"] for (run,) in runs]
    assert ("CUDA out of memory", 0) == (runs[OTHER][0]["reason"], runs[OTHER][0]["block"])
    verdict = judge_arms({**EVENT, "round": 2, "runs": []}, services=services)
    assert ("continue", "speed") == (verdict["verdict"], verdict["next_stage"])


@pytest.mark.parametrize(("hours", "failed"), [(2.0, 1), (1.9, 0)])
def test_a_speed_job_at_the_limit_of_its_segments_failed_and_was_not_cut_off(
    hours: float, failed: int, services: Any
) -> None:
    """One arm, one block and what comes before it; less was set to stay within the budget."""
    planned(services, P4D)
    answer = call_judge(services, 0, [], asks_speed("p4d"))
    request = asked(services, answer)["s0b0"]
    message = "the job reached its MaxRuntimeInSeconds (training.max_runtime_hours)"
    hung = outcome("s0b0", "Stopped", reason=message, timed_out=True)
    services.jobs.add(hung["job"], "Stopped", 1000.0, 2000.0)
    services.jobs.descriptions[hung["job"]] |= {
        "StoppingCondition": {"MaxRuntimeInSeconds": round(hours * HOUR)},
        "HyperParameters": request["HyperParameters"],
    }
    call_judge(services, 1, [ended(services, "s0a0", "baseline"), hung], asks_speed("p4d"))

    assert [1, failed] == [len(arm["runs"]) for arm in evidence(services)["arms"]]


def test_a_dropped_candidate_is_not_failed_by_another_ones_job_on_the_same_cluster(
    services: Any,
) -> None:
    other = dataclasses.replace(P4D, name="p4d-b48", batch_size=48)
    planned(services, P4D, other)
    call_judge(services, 1, [], asks_speed("p4d-b48"))
    call_judge(
        services, 2, [outcome("s1b0", "Failed", reason="OOM")], asks_full_runs("p4d 17")
    )  # fmt: skip

    assert [0, 0, 1] == [len(arm["runs"]) for arm in evidence(services)["arms"]]


@pytest.mark.parametrize(("half", "kept"), [("measured", [1, 0]), ("stopped by the trial", [0, 0])])
def test_a_block_whose_other_half_the_cloud_lost_is_asked_for_again(
    services: Any, half: str, kept: list[int]
) -> None:
    planned(services, P4D)
    call_judge(services, 0, [], asks_speed("p4d"))
    lost = outcome("s0b0", "Failed", infrastructure=True, reason="CapacityError: none left")
    measured = half == "measured"
    other = ended(services, "s0a0", "baseline") if measured else own_stop(services, "s0a0")
    answer = judge_arms({**EVENT, "round": 1, "runs": [other, lost]}, services=services)

    assert ["s1a1", "s1b1"] == [run["run"] for run in answer["runs"]] or not measured
    assert "continue" == answer["verdict"]
    assert kept == [len(arm["runs"]) for arm in evidence(services)["arms"]]
    assert [1] == evidence(services)["plan"]["lost_rounds"]


@pytest.mark.parametrize("cap", [600.0, 1234.5])
def test_every_speed_job_at_its_limit_stays_under_the_cap(cap: float, services: Any) -> None:
    planned(
        services, COMPILE, P4D,
        policy__max_trial_usd=cap, schedule__run_hours=1.0, quality__history=(),
    )  # fmt: skip
    rates = [arm["usd_per_hour"] for arm in load(services, "plan")["arms"]]
    number, answer = 0, call_judge(services, 0, [], asks_speed("compile", "p4d", blocks=3))
    while answer["verdict"] == "continue":
        requests, outcomes = asked(services, answer), []
        for run, request in requests.items():
            failed = own_stop(services, run)
            limit = request["StoppingCondition"]["MaxRuntimeInSeconds"]
            services.jobs.add(failed["job"], "Stopped", 1.0, 1.0 + limit + STOP_SECONDS)
            outcomes.append(failed)
        number += 1
        answer = call_judge(
            services, number, outcomes, asks_speed("compile", "p4d", blocks=3, usd=None)
        )

    assert "trial_over_budget" == load(services, "decision")["reasons"][0]["code"]
    spent = evidence(services)["plan"]["spent_usd"]
    assert 0.5 * cap < spent <= cap
    assert rates[OTHER] > rates[BASELINE]


@pytest.mark.parametrize(
    ("number", "left", "block"),
    [(0, "baseline", 0), (0, "compile", 0), (0, "nobody", 0), (3, None, 4)],
)
def test_a_job_that_left_evidence_of_an_arm_or_block_that_it_did_not_run_is_invalid(
    number: int, left: str | None, block: int, services: Any
) -> None:
    planned(services, COMPILE, P4D)
    call_judge(services, number, [], asks_speed("compile", "p4d", blocks=1 + bool(number)))
    done = ended(services, f"s{number}b0", *filter(None, ("p4d", left)), block=block)
    answer = call_judge(services, number + 1, [done], asks_speed())

    assert "invalid" == answer["verdict"]
    refusal = load(services, "decision")["reasons"][0]
    assert "evidence_invalid" == refusal["code"]
    assert f"{left or 'p4d'} in block {block}" in refusal["message"]


def test_a_full_run_on_a_dearer_cluster_is_expected_to_cost_what_todays_does(services: Any) -> None:
    """It gets one only once it is faster by its price; every job gets its share of what is left."""
    planned(services, P4D)
    call_judge(services, 0, [], asks_speed("p4d"))
    plan = load(services, "plan")
    base, other = (arm["usd_per_hour"] for arm in plan["arms"])
    stop = STOP_SECONDS / HOUR * (base + other)
    room = plan["max_trial_usd"] - 2 * plan["usd_per_quality_run"] - stop
    done = ended(services, "s0a0", "baseline", hours=room / base - 0.01)
    answer = call_judge(services, 1, [done], asks_full_runs("p4d 17", "baseline 17", usd=None))

    assert base < other
    assert "continue" == answer["verdict"]
    limits = [
        request["StoppingCondition"]["MaxRuntimeInSeconds"] / HOUR
        for request in asked(services, answer).values()
    ]
    hours = plan["usd_per_quality_run"] / base
    assert limits == [pytest.approx(hours * base / other, rel=1e-2), pytest.approx(hours, rel=1e-2)]
