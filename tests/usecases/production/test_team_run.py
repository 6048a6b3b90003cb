"""Jobs that a team starts itself: recorded once, whatever order their events come in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain import naming
from compilegate.domain.records.production import ProductionRun
from compilegate.usecases.production.record_run import on_run_ended
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production.runs import (
    CAPACITY,
    FLAG,
    NAME,
    ON,
    OUT_OF_MEMORY,
    Production,
    summary_tar,
)

OWN = {
    naming.TAG_STAGE: naming.TEAM_STAGE, naming.TAG_WORKLOAD: NAME, naming.TAG_ARM: "compile",
    naming.TAG_DECISION: "d1",
}  # fmt: skip
PLACE = "s3://team-bucket/nightly"
P5 = "ml.p5.48xlarge"


@pytest.fixture
def production():
    return Production()


def team_job(production, job="nightly-1", *, tags=(), machines=(), leaves=None, **described):
    """A job of the team's own pipeline, in a bucket of its own; a tag of None is not set."""
    training = SOUND.training
    cluster = {"InstanceType": training.instance_type, "InstanceCount": training.instance_count}
    request = {
        "RoleArn": production.services.settings.role_of(NAME),
        "OutputDataConfig": {"S3OutputPath": PLACE},
        "ResourceConfig": {**cluster, **dict(machines)},
        "Tags": [
            {"Key": key, "Value": value}
            for key, value in {**OWN, **dict(tags)}.items()
            if value is not None
        ],
    }
    request |= described.pop("request", {})
    status = described.pop("status", "Completed")
    production.describe(job, status, output=None, request=request, **described)
    if leaves is not None:
        production.services.store.put(f"{PLACE}/{job}/output/output.tar.gz", leaves)
    return job


def recorded(production, job="nightly-1"):
    """RecordRun's answer to the event of a team's job."""
    event = {"workload": NAME, "job": job, "execution": "e"}
    return on_run_ended(event, services=production.services)


def test_it_is_recorded_with_what_its_tags_and_its_output_say(production):
    job, began = team_job(production, leaves=summary_tar()), production.services.clock.now()
    production.services.clock.seconds += 7500

    answer = recorded(production)

    assert ("watch", SOUND.owner) == (answer["next"], answer["owner"])
    (run,) = production.runs()
    assert answer["run"] == run.run
    assert 0.91 == run.result["metric"]
    assert run == ProductionRun(
        run=naming.trial_id(began * 1000), job=job, arm="compile", started_at=began,
        ended_at=began + 7200, result=run.result, counts=True, why="team", launched_by="team",
        status="Completed", decision_id="d1", instance_type=SOUND.training.instance_type,
        billable_seconds=7200, details={"ending": "completed"}, at=began + 7500,
    )  # fmt: skip


ANOTHER = "arn:aws:iam::111122223333:role/another-team"


def test_a_job_that_another_role_ran_feeds_no_watch_whatever_its_tags_say(production):
    job = team_job(production, leaves=summary_tar(), request={"RoleArn": ANOTHER})
    answers = [recorded(production) for _ in range(2)]

    assert [("end", "Ignored", False)] * 2 == [
        (answer["next"], answer["status"], answer["counts"]) for answer in answers
    ]
    assert ANOTHER in answers[0]["reason"]
    assert [] == production.runs()
    (kept,) = [
        one for one in production.services.ledger.raw.entries(NAME) if one["kind"] == "job_ignored"
    ]
    assert (job, ANOTHER, "job_of_another_role") == (kept["job"], kept["role"], kept["code"])


@pytest.mark.parametrize(("named", "counted"), [(ANOTHER, True), (f"{ANOTHER}-2", False)])
def test_a_team_may_name_the_role_that_its_pipeline_trains_as(named, counted):
    production = Production(change(SOUND, schedule__team_role=named))
    team_job(production, leaves=summary_tar(), request={"RoleArn": ANOTHER})

    assert counted is recorded(production)["counts"]


def test_runs_stand_in_the_order_in_which_they_trained_however_late_their_events(production):
    jobs = []
    for number in (1, 2, 3):
        jobs.append(team_job(production, f"nightly-{number}", leaves=summary_tar()))
        production.services.clock.seconds += 86_400

    for job in (jobs[2], jobs[0], jobs[1]):
        recorded(production, job)

    assert jobs == [run.job for run in production.runs()]


def test_an_overwritten_parameter_is_repaired_for_the_pipelines_next_run(production):
    production.promote()
    production.services.flags.write(FLAG, "on")
    team_job(production, leaves=summary_tar())

    recorded(production)

    assert ON.to_json() == production.services.flags.read(FLAG)


def test_a_parameter_that_cannot_be_repaired_loses_no_run(production):
    def forbidden(name):
        raise PermissionError(name)

    production.services.flags.read = forbidden
    team_job(production, leaves=summary_tar())

    assert "watch" == recorded(production)["next"]
    assert 1 == len(production.runs())


@pytest.mark.parametrize(("deployment", "count"), [("prod", 1), ("dev", 0), (None, 1)])
def test_a_job_that_followed_another_deployments_flag_is_left_to_that_one(
    production, deployment, count
):
    """Every deployment of an account gets the events of all jobs; a job may name none."""
    tags = {naming.TAG_DEPLOYMENT: deployment} if deployment else {}
    team_job(production, tags=tags, leaves=summary_tar())

    recorded(production)

    assert count == len(production.runs())


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"status": "InProgress"}, "has not ended"),
        ({"tags": {naming.TAG_STAGE: naming.PRODUCTION_STAGE}}, ""),
        ({"tags": {naming.TAG_WORKLOAD: "another"}}, ""),
        ({"tags": dict.fromkeys(OWN)}, ""),
        (None, "knows no training job"),
    ],
    ids=["early event", "production's own", "another workload's", "without tags", "unknown"],
)
def test_other_jobs_are_left_alone(production, job, reason):
    if job is not None:
        team_job(production, **job)

    answer = recorded(production)

    assert ("end", "Ignored") == (answer["next"], answer["status"])
    assert reason in answer["reason"]
    assert [] == production.runs()


def test_a_job_of_a_retired_workload_is_left_alone(production):
    team_job(production)
    production.register(SOUND, active=False)

    assert "not in production" in recorded(production)["reason"]
    assert [] == production.runs()


CRASH = {"status": "Failed", "FailureReason": OUT_OF_MEMORY}
TRAINS_ON = f"compile trains on 1 of {SOUND.training.instance_type}"


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"leaves": None}, "no evidence"),
        ({"tags": {naming.TAG_ARM: None}}, naming.TAG_ARM),
        ({"machines": {"InstanceType": P5}}, f"it trained on 1 of {P5}, and {TRAINS_ON}"),
        ({"machines": {"InstanceCount": 2}}, TRAINS_ON),
        ({"machines": {"InstanceType": P5}, **CRASH}, TRAINS_ON),
        ({"status": "Failed", "FailureReason": CAPACITY}, ""),
    ],
    ids=["no evidence", "no arm", "other type", "other count", "crash elsewhere", "no capacity"],
)
def test_a_team_run_that_shows_nothing_of_an_arm_is_recorded_and_no_evidence(
    production, job, reason
):
    team_job(production, **{"leaves": summary_tar(), **job})

    recorded(production)

    (run,) = production.runs()
    assert not run.counts
    assert reason in run.reason


def test_a_crash_is_evidence(production):
    team_job(production, **CRASH)

    recorded(production)

    (run,) = production.runs()
    assert (True, False, "Failed", "failed") == (
        run.counts, run.finished, run.status, run.details["ending"],
    )  # fmt: skip
    assert OUT_OF_MEMORY in run.reason
    assert OUT_OF_MEMORY in run.result["reason"]


def test_a_run_without_its_tag_is_of_no_arm_and_one_without_evidence_says_why(production):
    team_job(production, "nightly-1", tags={naming.TAG_ARM: None}, leaves=summary_tar())
    team_job(production, "nightly-2", leaves=summary_tar(finished=False, reason="out of disk"))

    recorded(production, "nightly-1")
    recorded(production, "nightly-2")

    arms = {run.job: (run.arm, run.reason) for run in production.runs()}
    assert "unknown" == arms["nightly-1"][0]
    assert ("compile", "out of disk") == arms["nightly-2"]


@pytest.mark.parametrize(("arm", "counts"), [("compile", True), ("baseline", False)])
@pytest.mark.parametrize(
    ("override", "machine"),
    [
        ({"instance_type": P5}, {"InstanceType": P5}),
        ({"instance_count": 2}, {"InstanceCount": 2}),
        ({"instance_type": P5, "instance_count": 3}, {"InstanceType": P5, "InstanceCount": 3}),
    ],
)
def test_the_candidates_machines_are_those_of_its_flag(production, arm, counts, override, machine):
    production.promote(replace(ON, overrides={"compiler": "torch_compile", **override}))
    team_job(production, tags={naming.TAG_ARM: arm}, machines=machine, leaves=summary_tar())

    recorded(production)

    assert [counts] == [run.counts for run in production.runs()]
