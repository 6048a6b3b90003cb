"""The loop from end to end, each step with the permissions of its deployed role and no more.

A trial promotes, production is watched and reverts, and a crash leaves the flag alone. The other
tests of this folder belong to the longer tier.
"""

from __future__ import annotations

import json

import pytest

from compilegate.domain import naming
from tests.domain.evidence_builder import judge
from tests.e2e.conftest import COMPILE_CANDIDATE
from tests.e2e.production import Promoted

pytestmark = pytest.mark.e2e


@pytest.fixture
def promoted(app, trial):
    """Runs a trial to its promotion; ``probation_runs`` are watched afterwards."""

    def promote(probation_runs, **knobs):
        running = trial(policy={"probation_runs": probation_runs}, **knobs)
        assert "promote" == running.output(90)["verdict"]
        return Promoted(app, running.workload, running=running)

    return promote


def test_a_faster_candidate_of_equal_quality_is_promoted(trial):
    running = trial()

    running.output()
    decision = running.record("decision")
    assert "promote" == decision["verdict"], decision["reasons"]
    assert 1.4 < decision["speedup"]["estimate"] < 1.55
    flag = running.flag()
    assert flag is not None
    assert (True, "probation", {"compiler": "torch_compile"}, decision["decision_id"]) == (
        flag["enabled"],
        flag["state"],
        flag["overrides"],
        flag["decision_id"],
    )
    assert {"started", "decision", "flag"} == set(running.entries())
    assert running.lock() is None
    assert {"Completed"} == set(running.jobs().values())
    # Two speed jobs, three full runs of each arm: of two runs each the candidate's spread more,
    # and one degree of freedom proves too little at the first look.
    assert 8 == len(running.jobs())
    replayed = judge(running.record("evidence")).to_dict(decision["flag"]["name"])
    assert json.loads(json.dumps(replayed)) == {k: v for k, v in decision.items() if k != "trial"}


def test_a_metric_that_drops_in_production_alarms_is_checked_and_turned_off(promoted, app):
    workload = promoted(12, production_shift=0.2)
    for _ in range(12):
        output = workload.succeed()
        if not workload.flag()["enabled"]:
            break
    watches = workload.entries("review")
    last = workload.entries("flag")[-1]
    place = f"decisions/{workload.name}/{workload.running.trial}/probation/{last['decision_id']}"
    decision = json.loads(app.store.get(f"{place}.json"))
    replayed = judge(json.loads(app.store.get(f"{place}-evidence.json")))

    assert ("revert", True) == (output["verdict"], output["flag_changed"])
    assert ("reverted", False) == (workload.flag()["state"], workload.flag()["enabled"])
    assert ["alarm", "revert"] == [entry["tell"] for entry in watches if entry["tell"]]
    assert ["baseline", "compile", "compile", "baseline", "baseline", "compile"] == [
        run.arm for run in workload.runs() if run.confirm
    ]
    assert ["quality_regressed"] == [reason["code"] for reason in decision["reasons"]]
    assert last["decision_id"] == replayed.decision_id
    assert output.get("review_failed") is None
    assert app.store.exists(
        f"s3://{app.store.bucket}/"
        + naming.probation_report_key(
            workload.name, workload.running.trial, last["decision_id"], "html"
        )
    )


def test_a_candidate_that_crashes_stays_off_and_its_siblings_are_stopped(trial):
    running = trial(crash="compile", hang="baseline")

    assert "SUCCEEDED" == running.wait()["status"]
    decision = running.record("decision")
    assert "stay_off" == decision["verdict"]
    assert "Stopped" in running.jobs().values()
    crashed = [
        r for arm in running.record("evidence")["arms"] for r in arm["runs"] if not r["finished"]
    ]
    assert "CUDA out of memory" in crashed[0]["reason"]
    running.wait_until_released()
    assert "InProgress" not in running.jobs().values()
    assert running.flag() is None


@pytest.mark.slow
def test_a_lost_candidate_is_stopped_while_the_baseline_runs_on_for_the_next(trial):
    """Without the baseline's runs the next one would have to be measured again."""
    other = {"name": "compile-b48", "compiler": "torch_compile", "batch_size": 48}
    running = trial(candidates=[COMPILE_CANDIDATE, other], behind="compile-b48", nan="compile",
                    slow="compile", slow_seed=18)  # fmt: skip
    decision = running.decision()

    assert ("promote", "compile-b48") == (decision["verdict"], decision["candidate"])
    ends = {}
    for job, status in running.jobs().items():
        run = naming.job_run(running.workload, running.trial, running.job(job))
        if not run.is_speed:
            ends.setdefault((run.arm_index, run.round_number), []).append(status)
    assert ["Completed", "Stopped"] == sorted(ends.pop(min(one for one in ends if one[0] == 1)))
    assert {"Completed"} == {status for statuses in ends.values() for status in statuses}


def test_a_step_without_a_grant_that_it_needs_is_refused(trial, app):
    function = app.client("lambda").get_function_configuration(
        FunctionName="compilegate-local-check-eligibility"
    )
    iam, role = app.client("iam"), function["Role"].rpartition("/")[2]
    grants = {
        name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
    }
    for name in grants:
        iam.delete_role_policy(RoleName=role, PolicyName=name)
    try:
        running = trial()
        ended = running.wait()
    finally:
        for name, document in grants.items():
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))

    assert "FAILED" == ended["status"]
    assert "is not authorized to perform: s3:GetObject" in ended["cause"]
    assert {} == running.jobs()
