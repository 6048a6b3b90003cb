"""Controls: a candidate's framework without its compiler, measured beside it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.workload.model import Candidate, FactOverrides, Framework, OwnImage
from compilegate.usecases.trial.judge_arms import judge_arms
from compilegate.usecases.trial.on_job_ended import on_job_ended
from tests.archives import tarball
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

    key = partial(naming.request_key, "bert-docs", TRIAL)
    job = partial(naming.job_base, "bert-docs", TRIAL)
    assert [
        {"run": run, "request_key": key(run), "job_base": job(run), **more}
        for run, more in {
            "s2a2": {}, "s2b2": {}, "s2c2": {"control": "true"}, "s2a3": {}, "s2b3": {},
        }.items()
    ] == answer["runs"]  # fmt: skip
    later = call_judge(services, 3, [], asks_full_runs("managed 17", "baseline 17"))
    assert ["q3b17", "q3a17"] == [run["run"] for run in later["runs"]]


CONTROL = "managed-native"
BROKEN = {
    "nothing": None,
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


def test_a_controls_job_that_fails_leaves_it_unmeasured_and_says_why(services: Any) -> None:
    with_control(services)
    call_judge(services, 0, [], asks_speed("managed"))
    answer = round_with(services, outcome("s0c0", "Failed", reason="ImportError"))

    assert ("continue", ["ImportError"]) == (answer["verdict"], unmeasured(services))


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


def test_a_job_without_any_block_of_an_arm_is_kept_with_that_arm(services: Any) -> None:
    planned(services, COMPILE)
    ((run, request),) = asked(services, call_judge(services, 0, [], asks_speed())).items()
    done = ended(services, run, "baseline")
    services.jobs.descriptions[done["job"]]["HyperParameters"] = request["HyperParameters"]
    call_judge(services, 1, [done], asks_speed(block=1))

    assert {done["job"]: ["compile"]} == evidence(services)["plan"]["unmeasured_by_job"]


# Arms that cannot share the baseline's nodes: a speed job per block and kind of node.


HOUR = 3600
P4D = Candidate(name="p4d", instance_type="ml.p4d.24xlarge")


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
