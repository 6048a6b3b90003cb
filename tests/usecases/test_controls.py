"""Controls: a candidate's framework without its compiler, measured beside it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.trial.jobs import STOP_SECONDS
from compilegate.domain.workload.model import Candidate, FactOverrides, Framework, OwnImage
from compilegate.report.words import control_sentences
from compilegate.usecases.trial.apply_flag import apply_flag
from compilegate.usecases.trial.judge_arms import judge_arms
from compilegate.usecases.trial.on_job_ended import on_job_ended
from tests.archives import tarball
from tests.decision_builder import control_figures, decision_document
from tests.domain.workload_builder import COMPILE
from tests.usecases.trial_builder import (
    EVENT,
    FLAG,
    TRIAL,
    arms_of,
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
    put_output,
    speed_output,
)

OLDER = Framework("pytorch", "1.13.1", None, "py39")
MANAGED = Candidate(
    name="managed", compiler="sagemaker_training_compiler", framework=OLDER,
    distribution="pytorchxla",
)  # fmt: skip
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
IMAGES = tuple(
    OwnImage(
        framework="pytorch",
        version="1.13.1",
        uri=f"{REGISTRY}/{name}:1",
        python="py39",
        compiler=compiler,
    )
    for name, compiler in (("native", None), ("trcomp", "sagemaker_training_compiler"))
)


def with_control(services: Any) -> None:
    planned(services, MANAGED, facts=FactOverrides({}, IMAGES), training__precision="fp32")


def test_a_candidate_that_could_share_a_controls_nodes_is_not_failed_by_it(services: Any) -> None:
    older = Candidate(name="older", framework=OLDER)
    planned(services, MANAGED, older, facts=FactOverrides({}, IMAGES), training__precision="fp32")
    answer = call_judge(services, 0, [], asks_speed("managed", "older"))

    assert {
        "s0a0": ["baseline"], "s0b0": ["managed"], "s0c0": ["older"], "s0d0": ["managed-native"],
    } == {run: arms_of(request) for run, request in asked(services, answer).items()}  # fmt: skip


def test_a_control_takes_part_in_three_blocks_and_in_no_full_run(services: Any) -> None:
    with_control(services)
    outcomes: list[Any] = []
    for block in range(2):
        call_judge(services, block, outcomes, asks_speed("managed", block=block))
        outcomes = [
            ended(services, f"s{block}c{block}", "managed-native", block=block),
            ended(services, f"s{block}a{block}", "baseline", block=block),
        ]
    answer = call_judge(services, 2, outcomes, asks_speed("managed", block=2, blocks=2))

    assert ["s2a2", "s2b2", "s2c2", "s2a3", "s2b3"] == [run["run"] for run in answer["runs"]]
    later = call_judge(services, 3, [], asks_full_runs("managed 17", "baseline 17"))
    assert ["q3b17", "q3a17"] == [run["run"] for run in later["runs"]]


def test_rounds_are_not_counted_for_controls(services: Any) -> None:
    with_control(services)

    assert 3 == len(load(services, "plan")["arms"])
    assert 20 == load(services, "plan")["limits"]["max_rounds"]


def test_a_promotion_carries_everything_that_the_arm_changed(services: Any) -> None:
    candidate = dataclasses.replace(
        MANAGED, name="compile", entry_point="xla.py", hyperparameters={"dropout": 0.0}
    )
    planned(services, candidate, facts=FactOverrides({}, IMAGES), training__precision="fp32")
    key = naming.record_key("bert-docs", TRIAL, "decision")
    services.store.put(key, json.dumps(decision_document()).encode())
    apply_flag({**EVENT, "decision_key": key}, services=services)

    assert {
        "compiler": "sagemaker_training_compiler", "distribution": "pytorchxla",
        "entry_point": "xla.py", "hyperparameters": {"dropout": 0.0}, "image": IMAGES[1].uri,
        "framework": {"name": "pytorch", "version": "1.13.1", "python": "py39"},
    } == json.loads(services.flags.read(FLAG))["overrides"]  # fmt: skip


CONTROL = "managed-native"
BUDGET = "reached MaxRuntimeInSeconds"
OUTCOMES = {
    "failed": outcome("s0c0", "Failed", reason="ImportError"),
    "stopped by somebody": outcome("s0c0", "Stopped", reason="the job was stopped"),
    "lost to the cloud": outcome("s0c0", "Failed", reason="no capacity", infrastructure=True),
    "cut off": outcome("s0c0", "Stopped", reason=BUDGET, timed_out=True),
}
BROKEN = {
    "nothing": None,
    "no tarball": b"not a tarball",
    "no block": tarball({}),
    "a broken summary": tarball({f"evidence/block-0/{CONTROL}/summary.json": b"{"}),
    "another block's": speed_output(range(1, 2), speedup=1.0, arms=[CONTROL]),
    "another arm's": speed_output(range(1), speedup=9.0, arms=["managed"]),
    "figures against the contract": tarball(
        {
            f"evidence/block-0/{CONTROL}/summary.json": {
                "schema": 1, "finished": True, "full_run_steps": -1, "compiler": {},
            }
        }
    ),
}  # fmt: skip


def round_with(services: Any, control: Any, *, round_number: int = 1) -> Any:
    others = [ended(services, "s0a0", "baseline"), ended(services, "s0b0", "managed")]
    event = {**EVENT, "round": round_number, "runs": [control, *others]}
    return judge_arms(event, services=services)


def unmeasured(services: Any) -> list[str]:
    (control,) = evidence(services)["controls"]
    return [run["reason"] for run in control["runs"] if not run["finished"]]


@pytest.mark.parametrize("ending", OUTCOMES)
def test_a_controls_job_that_ends_badly_only_leaves_it_unmeasured(
    services: Any, ending: str
) -> None:
    with_control(services)
    call_judge(services, 0, [], asks_speed("managed"))
    control = OUTCOMES[ending]
    services.jobs.add(control["job"], control["status"], 1000.0, 4600.0)
    services.jobs.descriptions[control["job"]]["StoppingCondition"] = {"MaxRuntimeInSeconds": 1}
    answer = round_with(services, control)
    plan = evidence(services)["plan"]

    assert "continue" == answer["verdict"]
    assert [control["reason"]] == unmeasured(services)
    assert 0 < plan["usd_by_job"][control["job"]]
    assert "lost_rounds" not in plan


@pytest.mark.parametrize("left", BROKEN)
def test_a_controls_broken_evidence_only_leaves_it_unmeasured(services: Any, left: str) -> None:
    with_control(services)
    call_judge(services, 0, [], asks_speed("managed"))
    control = outcome("s0c0")
    body = BROKEN[left]
    if body is not None:
        put_output(services, control["job"], body)
    answer = round_with(services, control)

    assert "continue" == answer["verdict"]
    assert [1, 1] == [len(arm["runs"]) for arm in evidence(services)["arms"]]
    assert 1 == len(unmeasured(services))


@pytest.mark.parametrize("ending", ["stopped by somebody", "lost to the cloud"])
def test_the_round_goes_on_without_a_controls_job(services: Any, ending: str) -> None:
    with_control(services)
    answer = call_judge(services, 0, [], asks_speed("managed"))
    candidate = f"{next(r['job_base'] for r in answer['runs'] if r['run'] == 's0b0')}-r0"
    services.jobs.add(candidate, "InProgress", 1000.0)
    capacity = "CapacityError: no capacity" if ending == "lost to the cloud" else None
    described = {
        "TrainingJobStatus": "Failed" if capacity else "Stopped", "FailureReason": capacity,
    }  # fmt: skip
    event = {**EVENT, **outcome("s0c0", "x"), "runs": answer["runs"], "error": "States.TaskFailed"}
    on_job_ended({**event, "cause": json.dumps(described)}, services=services)

    assert "InProgress" == services.jobs.describe(candidate)["TrainingJobStatus"]


def test_a_controls_job_that_was_withdrawn_was_never_asked_for(services: Any) -> None:
    """Jobs take turns within the quota; the first one gets no machine, and the round is stopped."""
    with_control(services)
    runs = call_judge(services, 0, [], asks_speed("managed"))["runs"]
    lost = outcome("s0a0", "Failed", reason="CapacityError: none", infrastructure=True)
    services.jobs.add(lost["job"], "Failed", 1000.0, 1001.0)
    cause = json.dumps({"TrainingJobStatus": "Failed", "FailureReason": "CapacityError: none"})
    event = {**EVENT, **lost, "runs": runs, "error": "States.TaskFailed", "cause": cause}
    on_job_ended(event, services=services)
    withdrawn = [outcome(run, "Stopped", reason=None) for run in ("s0b0", "s0c0")]
    answer = judge_arms({**EVENT, "round": 1, "runs": [lost, *withdrawn]}, services=services)

    assert "continue" == answer["verdict"]
    assert "s1c0" in asked(services, answer)
    assert [] == unmeasured(services)


def test_controls_are_skipped_where_the_budget_is_tight(services: Any) -> None:
    with_control(services)
    first = call_judge(services, 0, [], asks_speed("managed", usd=None))
    document = evidence(services)
    plan = load(services, "plan")
    spent = plan["max_trial_usd"] - plan["usd_per_block"]
    document["plan"] |= {"spent_usd": spent, "usd_by_job": {"x": spent}}
    services.store.put("decisions/bert-docs/abcd1234/evidence.json", json.dumps(document).encode())
    tight = call_judge(services, 1, [], asks_speed("managed", usd=None))

    assert ["s0a0", "s0b0", "s0c0"] == sorted(asked(services, first))
    assert ["s1a0", "s1b0"] == sorted(asked(services, tight))


def test_the_report_says_why_a_control_was_not_measured() -> None:
    control = control_figures(CONTROL, "ImportError.")

    assert [
        "The same versions without the compiler (managed-native): not measured: ImportError."
    ] == control_sentences([control])


# Arms that cannot share the baseline's nodes: a speed job per block and kind of node.


HOUR = 3600
BASELINE, COMPILED, OTHER = 0, 1, 2
P4D = Candidate(name="p4d", instance_type="ml.p4d.24xlarge")


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
    stray, outcomes[1]["job"] = outcomes[1]["job"], f"{outcomes[1]['job'][:-1]}1"
    jobs = services.jobs
    jobs.descriptions[outcomes[1]["job"]] = jobs.descriptions.pop(stray)
    jobs.add(stray, "InProgress", started=float(services.clock.seconds) - HOUR)
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
