"""Jobs that a team starts itself: recorded once, whatever order their events come in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain import naming
from compilegate.domain.records.production import ProductionRun
from compilegate.usecases.production import record_run
from compilegate.usecases.production.record_run import on_run_ended
from tests.domain.workload_builder import SOUND
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
        "RoleArn": f"{production.services.settings.job_roles}{NAME}",
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


def test_it_is_recorded_with_what_its_tags_and_its_output_say(production, monkeypatch):
    heard = []
    monkeypatch.setattr(record_run, "close_after_run", lambda *of, **more: heard.append((of, more)))
    job, began = team_job(production, leaves=summary_tar()), production.services.clock.now()
    production.services.clock.seconds += 7500

    answer = recorded(production)

    assert ("review", SOUND.owner) == (answer["next"], answer["owner"])
    (run,) = production.runs()
    assert answer["run"] == run.run
    assert [((NAME, run), {"job": None, "services": production.services})] == heard
    assert 0.91 == run.result["metric"]
    assert run == ProductionRun(
        run=naming.trial_id(began * 1000), job=job, arm="compile", started_at=began,
        ended_at=began + 7200, result=run.result, counts=True, why="team", launched_by="team",
        status="Completed", decision_id="d1", instance_type=SOUND.training.instance_type,
        usd=40.72, billable_seconds=7200, details={"ending": "completed"}, at=began + 7500,
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


def test_an_overwritten_parameter_is_repaired_for_the_pipelines_next_run(production):
    production.promote()
    production.services.flags.write(FLAG, "on")
    team_job(production, leaves=summary_tar())
    recorded(production)

    assert ON.to_json() == production.services.flags.values[FLAG]


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"status": "InProgress"}, "has not ended"),
        ({"tags": dict.fromkeys(OWN)}, "does not carry"),
        # Every deployment of an account gets the events of all jobs.
        ({"tags": {naming.TAG_DEPLOYMENT: "dev"}}, "of the deployment dev, not of prod"),
        (None, "knows no training job"),
        ({"retired": True}, "not in production"),
    ],
    ids=[
        "early event", "without tags", "another deployment's", "unknown", "retired",
    ],
)  # fmt: skip
def test_other_jobs_are_left_alone(production, job, reason):
    given = dict(job or {})
    if given.pop("retired", False):
        production.register(SOUND, active=False)
    if job is not None:
        team_job(production, **given)

    answer = recorded(production)

    assert ("end", "Ignored") == (answer["next"], answer["status"])
    assert reason in answer["reason"]
    assert [] == production.runs()


CRASH = {"status": "Failed", "FailureReason": OUT_OF_MEMORY}
TRAINS_ON = f"compile trains on 1 of {SOUND.training.instance_type}"


@pytest.mark.parametrize(
    ("job", "counts", "arm", "reason"),
    [
        ({}, True, "compile", ""),
        ({"leaves": summary_tar(finished=False, reason="out of disk")}, True, "compile", "disk"),
        ({"leaves": None, **CRASH}, True, "compile", OUT_OF_MEMORY),
        ({"leaves": None}, False, "compile", "no evidence"),
        ({"tags": {naming.TAG_ARM: None}}, False, "unknown", naming.TAG_ARM),
        ({"machines": {"InstanceType": P5}, **CRASH}, False, "compile", TRAINS_ON),
        ({"status": "Failed", "FailureReason": CAPACITY}, False, "compile", ""),
    ],
    ids=[
        "as asked", "did not finish", "crash", "no evidence", "no arm",
        "crash elsewhere", "no capacity",
    ],
)  # fmt: skip
def test_a_team_run_counts_where_it_shows_something_of_its_arm(
    production, *, job, counts, arm, reason
):
    team_job(production, **{"leaves": summary_tar(), **job})

    assert ("review" if counts else "end") == recorded(production)["next"]
    (run,) = production.runs()
    assert (counts, arm) == (run.counts, run.arm)
    assert reason in str(run.reason)
    if job.get("FailureReason") == OUT_OF_MEMORY:
        assert (False, "Failed", "failed") == (run.finished, run.status, run.details["ending"])
        assert OUT_OF_MEMORY in run.result["reason"]


@pytest.mark.parametrize(("arm", "counts"), [("compile", True), ("baseline", False)])
def test_the_candidates_machines_are_those_of_its_flag(production, arm, counts):
    machines = {"instance_type": P5, "instance_count": 3}
    production.promote(replace(ON, overrides={"compiler": "torch_compile", **machines}))
    machine = {"InstanceType": P5, "InstanceCount": 3}
    team_job(production, tags={naming.TAG_ARM: arm}, machines=machine, leaves=summary_tar())

    recorded(production)

    assert [counts] == [run.counts for run in production.runs()]
