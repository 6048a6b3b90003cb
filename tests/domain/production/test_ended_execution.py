"""What is recorded of executions that ended badly and of the jobs of teams' own pipelines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.flag import Flag
from compilegate.domain.production.attempts import Attempt, AttemptEnd, JobEvidence
from compilegate.domain.production.ended_execution import (
    EndedExecution,
    job_of_another_role,
    refusal,
    team_run,
    unrecorded_attempts,
)
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import BegunRun, CapacityWait, IgnoredJob, ProductionRun
from compilegate.facts import load_facts
from tests.domain.production.run_builder import production_run
from tests.domain.workload_builder import SOUND, change

NOW, BEGAN = 1_790_000_000, 1_789_990_000
MACHINE, FACTS = "ml.g5.2xlarge", load_facts()


@pytest.mark.parametrize(
    ("detail", "workload", "status", "why"),
    [
        ({"status": "ENDED", "input": '{"workload": "w"}'}, "w", "ENDED", "ENDED"),
        ({"status": "FAILED", "error": "X", "cause": "why"}, None, "FAILED", "X: why"),
        ({"status": "FAILED", "input": '{"workload": 5}'}, None, "FAILED", "FAILED"),
        ({"status": "FAILED", "input": '["workload"]'}, None, "FAILED", "FAILED"),
        ({"status": "FAILED", "input": "{"}, None, "FAILED", "FAILED"),
    ],
)
def test_an_event_says_how_an_execution_ended_whatever_its_input_was(detail, workload, status, why):
    read = EndedExecution.from_event({"executionArn": "e", **detail})

    assert EndedExecution("e", workload, status, why) == read


BEGUN = BegunRun(0, "r", "e", "compile", "flag", 17, 1, "spec", "source")
P0, P1, P2 = (naming.job_base("w", "r", naming.attempt(number)) for number in range(3))
WAIT = CapacityWait(0, "r", 0, P0, next_instance_type="ml.b")


def of(run: str, job: str) -> ProductionRun:
    return production_run(1, run=run, job=job)


@pytest.mark.parametrize(
    ("jobs", "waits", "runs", "missing"),
    [
        ([P2, P0, P1], [WAIT], [of("x", P1)],
         [(P1, Attempt(1, instance_type="ml.b")), (P2, Attempt(2, rerun=True))]),
        ([P0, P1], [replace(WAIT, run="x")], [of("r", P1)], [(P0, Attempt())]),
        ([], [WAIT], [of("x", P0)], [(P0, Attempt())]),
        ([], [], [of("r", P0)], []),
    ],
)  # fmt: skip
def test_attempts_that_the_ledger_does_not_have_are_those_of_the_runs_jobs(
    jobs, waits, runs, missing
):
    past = WorkloadHistory(waits=tuple(waits), runs=tuple(runs))

    expected = [AttemptEnd("w", "r", job, attempt) for job, attempt in missing]
    assert expected == unrecorded_attempts("w", BEGUN, past, jobs)


TAGS = {naming.TAG_STAGE: naming.TEAM_STAGE, naming.TAG_WORKLOAD: "w"}


@pytest.mark.parametrize(
    ("status", "tags", "refused"),
    [
        ("Completed", {}, ""),
        ("Stopped", {naming.TAG_DEPLOYMENT: "prod"}, ""),
        ("Failed", {naming.TAG_DEPLOYMENT: "dev"}, "deployment dev, not of prod"),
        ("InProgress", {}, "has not ended (InProgress)"),
        ("Completed", {naming.TAG_STAGE: "prod"}, "does not carry the tags"),
        ("Completed", {naming.TAG_WORKLOAD: "x"}, "does not carry the tags"),
    ],
)
def test_a_teams_ended_job_with_the_workloads_tags_is_recorded_and_no_other(status, tags, refused):
    described = {"TrainingJobName": "j", "TrainingJobStatus": status}
    problem = refusal("w", described, {**TAGS, **tags}, stage="prod")

    assert (bool(refused), True) == (problem.startswith("j "), refused in problem)
    assert bool(refused) is bool(problem)


@pytest.mark.parametrize(("role", "is_own"), [("own", True), ("team", True), ("x", False)])
def test_a_job_of_another_role_is_left_out_with_its_role(role, is_own):
    job = {"TrainingJobName": "j", "RoleArn": role}
    ignored = None if is_own else IgnoredJob(NOW, "j", role, "job_of_another_role")

    workload = change(SOUND, schedule__team_role="team")
    assert ignored == job_of_another_role(job, "own", workload, now=NOW)


def version(number: int, candidate: str, **overrides: Any) -> FlagVersion:
    flag = Flag(True, "probation", candidate, overrides)
    return FlagVersion(number, number, f"c{number}", "evaluate", "a", "r", flag.to_json())


@pytest.mark.parametrize(
    ("arm", "machines", "count", "counts"),
    [
        ("baseline", "ml.a", 2, True), ("baseline", MACHINE, 2, False),
        ("baseline", "ml.a", 3, False), ("old", "ml.b", 2, True), ("new", MACHINE, 4, True),
        ("new", "ml.c", 4, False), ("new", MACHINE, 2, False), (None, "ml.a", 2, False),
    ],
)  # fmt: skip
def test_a_teams_job_is_evidence_where_its_arm_trained_on_the_machines_of_its_latest_flag(
    arm, machines, count, counts
):
    training = replace(SOUND.training, instance_type="ml.a", instance_count=2)
    versions = [
        version(1, "new", instance_type="ml.c"), version(2, "old", instance_type="ml.b"),
        version(3, "new", instance_type=MACHINE, instance_count=4),
    ]  # fmt: skip
    described = {
        "TrainingJobName": "j", "TrainingJobStatus": "Completed", "BillableTimeInSeconds": 900,
        "TrainingStartTime": datetime.fromtimestamp(BEGAN, UTC),
        "TrainingEndTime": datetime.fromtimestamp(BEGAN + 600, UTC),
        "ResourceConfig": {"InstanceType": machines, "InstanceCount": count},
    }  # fmt: skip
    tags = {naming.TAG_DECISION: "d1"} | ({naming.TAG_ARM: arm} if arm else {})
    result = {"finished": True, "metric": 0.9}

    run = team_run(described, tags, JobEvidence(result), training, versions, facts=FACTS, now=NOW)

    price = FACTS.price(MACHINE)
    assert ProductionRun(
        naming.trial_id(1000 * BEGAN), "j", arm or "unknown", BEGAN, BEGAN + 600, result, counts,
        "team", "team", decision_id="d1", instance_type=machines, billable_seconds=900.0,
        usd=price.usd_per_hour / 4 * count if price and machines == MACHINE else None,
        details={"ending": "completed"}, at=NOW, reason=run.reason,
    ) == run  # fmt: skip
    assert counts is (run.reason is None)
    if arm and not counts:
        wanted = {"baseline": "2 of ml.a", "new": f"4 of {MACHINE}"}[arm]
        assert f"on {count} of {machines}, and {arm} trains on {wanted}: " in str(run.reason)


def test_a_teams_failed_job_without_machines_or_times_costs_what_is_not_known():
    described = {"TrainingJobName": "j", "TrainingJobStatus": "Failed", "FailureReason": "broke"}
    run = team_run(
        described, {naming.TAG_ARM: "a"}, JobEvidence({"x": 1}), SOUND.training, [],
        facts=FACTS, now=NOW,
    )  # fmt: skip

    assert (None, "Failed", NOW, NOW) == (run.usd, run.status, run.started_at, run.ended_at)
    assert (None, {"ending": "failed"}) == (run.instance_type, run.details)
