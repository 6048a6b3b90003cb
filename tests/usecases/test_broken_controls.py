"""Whatever a control's job does leaves the round and the verdict alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.report.words import control_sentences
from compilegate.usecases.trial.judge_arms import judge_arms
from compilegate.usecases.trial.on_job_ended import on_job_ended
from tests.usecases.test_controls import with_control
from tests.usecases.trial_builder import (
    EVENT,
    asked,
    asks_speed,
    call_judge,
    ended,
    evidence,
    evidence_tar,
    load,
    outcome,
    put_output,
    speed_output,
)

CONTROL = "managed-native"
BUDGET = "reached MaxRuntimeInSeconds"
OUTCOMES = {
    "failed": outcome("s0c0", "Failed", reason="ImportError"),
    "stopped by somebody": outcome("s0c0", "Stopped", reason="the job was stopped"),
    "lost to the cloud": outcome("s0c0", "Failed", reason="no capacity", infrastructure=True),
    "cut off": outcome("s0c0", "Stopped", reason=BUDGET),
}
BROKEN = {
    "nothing": None,
    "no tarball": b"not a tarball",
    "no block": evidence_tar({}),
    "a broken summary": evidence_tar({f"evidence/block-0/{CONTROL}/summary.json": b"{"}),
    "another block's": speed_output(range(1, 2), speedup=1.0, arms=[CONTROL]),
    "another arm's": speed_output(range(1), speedup=9.0, arms=["managed"]),
    "figures against the contract": evidence_tar(
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
    control = {"name": CONTROL, "speedup": None, "compiler_speedup": None, "reason": "ImportError."}

    assert [
        "The same versions without the compiler (managed-native): not measured: ImportError."
    ] == control_sentences({"controls": [control]})
