"""Controls: a candidate's framework without its compiler, measured beside it, judged by nobody."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from compilegate.domain import naming
from compilegate.domain.workload.model import Candidate, FactOverrides, Framework, OwnImage
from compilegate.usecases.trial.apply_flag import apply_flag
from compilegate.usecases.trial.judge_arms import judge_arms
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
    planned,
)

OLDER = Framework("pytorch", "1.13.1", None, "py39")
MANAGED = Candidate(
    name="managed", compiler="sagemaker_training_compiler", framework=OLDER,
    distribution="pytorchxla",
)  # fmt: skip
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
IMAGES = tuple(
    OwnImage("pytorch", "1.13.1", f"{REGISTRY}/{name}:1", python="py39", compiler=compiler)
    for name, compiler in (("native", None), ("trcomp", "sagemaker_training_compiler"))
)


def with_control(services: Any) -> None:
    planned(services, MANAGED, facts=FactOverrides({}, IMAGES), training__precision="fp32")


def test_a_control_is_measured_beside_its_candidate_and_kept_apart(services: Any) -> None:
    with_control(services)
    answer = call_judge(services, 0, [], asks_speed("managed"))
    found = asked(services, answer)

    assert {"s0a0": ["baseline"], "s0b0": ["managed"], "s0c0": ["managed-native"]} == {
        run: arms_of(request) for run, request in found.items()
    }
    assert ["s0c0"] == [run["run"] for run in answer["runs"] if "control" in run]
    outcomes = [
        ended(services, "s0a0", "baseline"), ended(services, "s0b0", "managed"),
        ended(services, "s0c0", "managed-native"),
    ]  # fmt: skip
    call_judge(services, 1, outcomes, asks_full_runs("managed 17"))
    document = evidence(services)

    assert ["baseline", "managed"] == [arm["name"] for arm in document["arms"]]
    assert [("managed-native", 1)] == [(c["name"], len(c["runs"])) for c in document["controls"]]


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


def test_a_controls_failure_is_nobodys_but_its_own(services: Any) -> None:
    with_control(services)
    call_judge(services, 0, [], asks_speed("managed"))
    outcomes = [
        ended(services, "s0a0", "baseline"), ended(services, "s0b0", "managed"),
        outcome("s0c0", "Failed", reason="ImportError"),
    ]  # fmt: skip
    answer = judge_arms({**EVENT, "round": 1, "runs": outcomes}, services=services)

    assert "continue" == answer["verdict"]
    assert [False] == [run["finished"] for run in evidence(services)["controls"][0]["runs"]]


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
    decision = {
        "decision_id": "d1", "judge_version": "1.2.0", "verdict": "promote", "candidate": "compile",
        "reasons": [], "flag": {"name": FLAG, "action": "enable"},
    }  # fmt: skip
    services.store.put(key, json.dumps(decision).encode())
    apply_flag({**EVENT, "decision_key": key}, services=services)

    assert {
        "compiler": "sagemaker_training_compiler", "distribution": "pytorchxla",
        "entry_point": "xla.py", "hyperparameters": {"dropout": 0.0}, "image": IMAGES[1].uri,
        "framework": {"name": "pytorch", "version": "1.13.1", "python": "py39"},
    } == json.loads(services.flags.read(FLAG))["overrides"]  # fmt: skip
