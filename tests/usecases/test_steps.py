"""Each step of a trial on in-memory services: what is recorded, and what a repetition does."""

from __future__ import annotations

import dataclasses
import io
import json
import tarfile
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError, WorkloadLockedError
from compilegate.usecases.abort_trial import abort_trial
from compilegate.usecases.acquire_lock import acquire_lock
from compilegate.usecases.apply_flag import apply_flag
from compilegate.usecases.check_eligibility import check_eligibility
from compilegate.usecases.judge_arms import judge_arms
from compilegate.usecases.plan_trial import plan_trial
from compilegate.usecases.record_decision import record_decision
from compilegate.usecases.release_lock import release_lock
from compilegate.usecases.settle_failed_run import settle_failed_run
from compilegate.usecases.take_in import InfrastructureFailureError
from compilegate.usecases.trial import to_json
from compilegate.usecases.write_report import write_report
from tests import fakes
from tests.domain.workload_builder import SOUND, XGBOOST

TRIAL = "abcd1234"
SPEC = "workloads/bert-docs/specs/x.json"
EVENT = {
    "workload": "bert-docs",
    "trial": TRIAL,
    "spec_key": SPEC,
    "execution": "arn:aws:states:us-east-1:1:execution:m:bert-docs-abcd1234",
}
FLAG = "/compilegate/prod/workloads/bert-docs/compiler"


@pytest.fixture
def services() -> Any:
    made = fakes.services("prod")
    put_spec(made, SOUND)
    return made


def put_spec(services: Any, workload: Any) -> None:
    document = {"workload": workload.to_dict(), "source_key": "workloads/bert-docs/s.tgz"}
    services.store.put(SPEC, to_json(document))


def decide(services: Any, verdict: str, action: str) -> dict[str, Any]:
    """A recorded decision, as JudgeArms leaves it."""
    plan_trial(EVENT, services=services)
    key = naming.record_key("bert-docs", TRIAL, "decision")
    decision = {
        "decision_id": "d1", "verdict": verdict, "candidate": "compile", "judge_version": "0",
        "reasons": [{"code": "x", "message": "y"}], "flag": {"name": FLAG, "action": action},
    }  # fmt: skip
    services.store.put(key, to_json(decision))
    return {**EVENT, "decision_key": key}


def evidence_tar(files: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, value in files.items():
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


def speed_output(blocks: range, *, speedup: float) -> bytes:
    files: dict[str, Any] = {}
    for block in blocks:
        for arm, step in (("baseline", 0.03), ("compile", 0.03 / speedup)):
            wobble = 1 + 0.001 * block
            lines = b"".join(
                json.dumps(
                    {"step": n, "seconds": step * wobble, "samples": 32, "loss": 3.0}
                ).encode()
                + b"\n"
                for n in range(160)
            )
            files[f"evidence/block-{block}/{arm}/steps.jsonl"] = lines
            files[f"evidence/block-{block}/{arm}/summary.json"] = {
                "schema": 1, "finished": True, "seed": block, "full_run_steps": 2000,
                "compiler": {"applied": True, "compile_seconds": 1.0 + 0.1 * block},
                "fingerprint": {"gpu": "g"}, "initial_loss": 3.0,
            }  # fmt: skip
    return evidence_tar(files)


def put_output(services: Any, job: str, body: bytes) -> None:
    services.store.put(naming.job_output_key("bert-docs", TRIAL, job), body)


def test_the_lock_is_taken_once_and_released_by_its_holder_only(services: Any) -> None:
    acquire_lock(EVENT, services=services)
    other = {**EVENT, "execution": "other"}

    with pytest.raises(WorkloadLockedError):
        acquire_lock(other, services=services)

    release_lock(other, services=services)
    with pytest.raises(WorkloadLockedError):
        acquire_lock(other, services=services)

    release_lock(EVENT, services=services)
    acquire_lock(other, services=services)


def test_an_ineligible_workload_gets_its_decision_and_a_report_without_charts(
    services: Any,
) -> None:
    put_spec(services, dataclasses.replace(XGBOOST, name="bert-docs"))
    answer = check_eligibility(EVENT, services=services)
    report = write_report({**EVENT, **answer}, services=services)

    assert "ineligible" == answer["verdict"]
    decision = json.loads(services.store.get(answer["decision_key"]))
    assert "not_gpu" in {reason["code"] for reason in decision["reasons"]}
    assert b"<!doctype html>" == services.store.get(report["report_key"])[:15].lower()
    assert len(report["subject"]) <= 100


def test_an_eligible_workload_goes_on_without_a_decision(services: Any) -> None:
    assert {"verdict": "eligible", "decision_key": None} == check_eligibility(
        EVENT, services=services
    )


def test_a_plan_fixes_arms_and_cost(services: Any) -> None:
    answer = plan_trial(EVENT, services=services)
    plan = json.loads(services.store.get(answer["plan_key"]))

    assert "continue" == answer["verdict"]
    assert ["baseline", "compile"] == [arm["name"] for arm in plan["arms"]]
    assert answer["estimated_usd"] == pytest.approx(plan["estimate"]["usd"], abs=1e-3)


def test_a_plan_above_the_cap_is_refused(services: Any) -> None:
    policy = dataclasses.replace(SOUND.policy, max_trial_usd=1.0)
    put_spec(services, dataclasses.replace(SOUND, policy=policy))
    answer = plan_trial(EVENT, services=services)

    assert "inconclusive" == answer["verdict"]
    decision = json.loads(services.store.get(answer["decision_key"]))
    assert "trial_over_budget" == decision["reasons"][0]["code"]


def first_round(services: Any) -> dict[str, Any]:
    plan_trial(EVENT, services=services)
    return judge_arms({**EVENT, "round": 0, "runs": []}, services=services)


def outcome(run: str, status: str = "Completed", **extra: Any) -> dict[str, Any]:
    job = f"{naming.job_base('bert-docs', TRIAL, run)}-r0"
    return {"run": run, "job": job, "status": status, "reason": None, **extra}


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
    assert {"q0a", "q0b", "q1a", "q1b", "q2a", "q2b"} == {run["run"] for run in answer["runs"]}


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


def test_a_decision_is_recorded_once(services: Any) -> None:
    event = decide(services, "promote", "enable")
    first = record_decision(event, services=services)
    record_decision(event, services=services)

    assert {"decision_id": "d1", "verdict": "promote", "flag_action": "enable"} == first
    kinds = [entry["kind"] for entry in services.ledger.entries("bert-docs")]
    assert ["decision"] == kinds


def test_a_promotion_writes_the_ledger_first_and_then_the_flag(services: Any) -> None:
    event = decide(services, "promote", "enable")

    assert {"changed": True, "enabled": True} == apply_flag(event, services=services)
    flag = json.loads(services.flags.read(FLAG))
    entry = services.ledger.entries("bert-docs")[0]
    assert {"compiler": "torch_compile"} == flag["overrides"]
    assert flag == json.loads(entry["to"])


def test_a_crash_between_ledger_and_flag_is_repaired_by_running_again(services: Any) -> None:
    event = decide(services, "promote", "enable")
    write = services.flags.write

    def crash(name: str, value: str) -> None:
        raise ConnectionError

    services.flags.write = crash
    with pytest.raises(ConnectionError):
        apply_flag(event, services=services)
    assert services.flags.read(FLAG) is None

    services.flags.write = write
    services.clock.seconds += 3600
    apply_flag(event, services=services)

    entry = services.ledger.entries("bert-docs")[0]
    assert services.flags.read(FLAG) == entry["to"]
    assert 1 == len(services.ledger.entries("bert-docs"))


@pytest.mark.parametrize("action", ["keep", "disable"])
def test_a_flag_that_is_off_stays_untouched(services: Any, action: str) -> None:
    event = decide(services, "stay_off", action)

    assert {"changed": False, "enabled": False} == apply_flag(event, services=services)
    assert services.flags.read(FLAG) is None


def test_a_proven_loss_switches_an_enabled_flag_off(services: Any) -> None:
    apply_flag(decide(services, "promote", "enable"), services=services)
    later = {**decide(services, "stay_off", "disable"), "trial": "abcd1235"}

    assert {"changed": True, "enabled": False} == apply_flag(later, services=services)
    assert not json.loads(services.flags.read(FLAG))["enabled"]


def test_an_abort_stops_jobs_writes_down_why_and_releases_the_lock(services: Any) -> None:
    acquire_lock(EVENT, services=services)
    job = f"{naming.job_base('bert-docs', TRIAL, 'q0a')}-r0"
    services.jobs.add(job, "InProgress", 0.0)
    answer = abort_trial({**EVENT, "error": "States.Timeout", "cause": ""}, services=services)

    assert "Stopped" == services.jobs.describe(job)["TrainingJobStatus"]
    assert "longer than its limit" in answer["reason"]
    acquire_lock({**EVENT, "execution": "next"}, services=services)


def test_an_abort_by_event_after_an_abort_by_catch_changes_nothing(services: Any) -> None:
    first = abort_trial({**EVENT, "error": "X", "cause": "because"}, services=services)
    event = {
        "detail": {
            "executionArn": EVENT["execution"], "status": "FAILED",
            "input": json.dumps({k: EVENT[k] for k in ("workload", "trial", "spec_key")}),
        }
    }  # fmt: skip

    assert first == abort_trial(event, services=services)
    kinds = [entry["kind"] for entry in services.ledger.entries("bert-docs")]
    assert kinds.count("failed") == 1


def test_another_execution_of_the_same_trial_cannot_abort_the_one_that_runs(
    services: Any,
) -> None:
    acquire_lock(EVENT, services=services)
    job = f"{naming.job_base('bert-docs', TRIAL, 'q0a')}-r0"
    services.jobs.add(job, "InProgress", 0.0)
    abort_trial({**EVENT, "execution": "copy", "error": "X", "cause": ""}, services=services)

    assert services.jobs.describe(job)["TrainingJobStatus"] == "InProgress"
    assert "failed" not in [entry["kind"] for entry in services.ledger.entries("bert-docs")]


@pytest.mark.parametrize("change", [{"instance_type": "ml.p4d.24xlarge"}, {"instance_count": 2}])
def test_an_arm_that_cannot_share_a_node_is_refused_at_planning(
    services: Any, change: dict[str, Any]
) -> None:
    candidate = dataclasses.replace(SOUND.candidates[0], **change)
    put_spec(services, dataclasses.replace(SOUND, candidates=(candidate,)))
    answer = plan_trial(EVENT, services=services)
    decision = json.loads(services.store.get(answer["decision_key"]))

    assert decision["reasons"][0]["code"] == "needs_own_speed_job"


def test_a_failed_run_stops_its_siblings_and_says_why(services: Any) -> None:
    sibling = f"{naming.job_base('bert-docs', TRIAL, 'q0a')}-r0"
    services.jobs.add(sibling, "InProgress", 0.0)
    cause = json.dumps({"TrainingJobStatus": "Failed", "FailureReason": "AlgorithmError: NaN"})
    answer = settle_failed_run(
        {**EVENT, "run": "q0b", "job": "j", "error": "States.TaskFailed", "cause": cause},
        services=services,
    )

    assert "Stopped" == services.jobs.describe(sibling)["TrainingJobStatus"]
    assert ("Failed", "AlgorithmError: NaN", False) == (
        answer["status"],
        answer["reason"],
        answer["infrastructure"],
    )


def test_a_missing_spec_is_not_found(services: Any) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        check_eligibility({**EVENT, "spec_key": "workloads/none.json"}, services=services)
