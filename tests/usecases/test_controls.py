"""Controls: a candidate's framework without its compiler, measured beside it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from compilegate.domain import naming
from compilegate.domain.workload.model import Candidate, FactOverrides, Framework, OwnImage
from compilegate.usecases.trial.judge_arms import judge_arms
from compilegate.usecases.trial.on_job_ended import on_job_ended
from tests.usecases.trial_builder import (
    EVENT,
    TRIAL,
    asked,
    asks_full_runs,
    asks_speed,
    call_judge,
    ended,
    evidence,
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
    OwnImage(
        framework="pytorch", version="1.13.1", uri=f"{REGISTRY}/{name}:1", python="py39",
        compiler=compiler,
    )
    for name, compiler in (("native", None), ("trcomp", "sagemaker_training_compiler"))
)  # fmt: skip


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
    request = asked(services, answer)["s2b2"]
    source = "s3://data/workloads/bert-docs/s.tgz"
    assert json.dumps(source) == request["HyperParameters"]["sagemaker_submit_directory"]
    assert {"Key": "compilegate:execution", "Value": EVENT["execution"]} in request["Tags"]
    later = call_judge(services, 3, [], asks_full_runs("managed 17", "baseline 17"))
    assert ["q3b17", "q3a17"] == [run["run"] for run in later["runs"]]


def test_the_round_goes_on_without_a_controls_job(services: Any) -> None:
    with_control(services)
    answer = call_judge(services, 0, [], asks_speed("managed"))
    candidate = f"{next(r['job_base'] for r in answer['runs'] if r['run'] == 's0b0')}-r0"
    services.jobs.add(candidate, "InProgress", 1000.0)
    event = {**EVENT, **outcome("s0c0", "x"), "runs": answer["runs"], "error": "States.TaskFailed"}
    cause = json.dumps({"TrainingJobStatus": "Stopped"})
    on_job_ended({**event, "cause": cause}, services=services)

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
    assert [[]] == [control["runs"] for control in evidence(services)["controls"]]
