"""Jobs that a team starts itself: recorded once, whatever order their events come in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain import naming
from compilegate.usecases.production.record_run import record_run
from tests.domain.workload_builder import SOUND
from tests.usecases.production.runs import (
    CAPACITY,
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


@pytest.fixture
def production():
    return Production()


def team_job(
    production, job="nightly-1", status="Completed", *, tags=None, machines=None, **described
):
    """A job of the team's own pipeline, in a bucket of its own."""
    request = {
        "OutputDataConfig": {"S3OutputPath": PLACE},
        "ResourceConfig": {
            "InstanceType": SOUND.training.instance_type,
            "InstanceCount": SOUND.training.instance_count,
            **(machines or {}),
        },
        "Tags": [{"Key": key, "Value": value} for key, value in (tags or OWN).items()],
    }
    production.describe(job, status, output=None, request=request, **described)
    return job


def leaves(production, job, body):
    production.services.store.put(f"{PLACE}/{job}/output/output.tar.gz", body)


def heard(production, job):
    """RecordTeamRun after an event."""
    return record_run(
        {"workload": NAME, "job": job, "execution": "e"}, services=production.services
    )


def test_it_is_recorded_with_what_its_tags_and_its_output_say(production):
    job = team_job(production)
    leaves(production, job, summary_tar())

    answer = heard(production, job)

    assert ("watch", SOUND.owner) == (answer["next"], answer["owner"])
    (run,) = production.runs()
    assert answer["run"] == run.run
    assert (job, "compile", "team", "team", True, "d1", 0.91) == (
        run.job, run.arm, run.why, run.launched_by, run.counts, run.decision_id,
        run.result["metric"],
    )  # fmt: skip


def test_runs_stand_in_the_order_in_which_they_trained_however_late_they_are_told(production):
    jobs = []
    for number in (1, 2, 3):
        jobs.append(team_job(production, f"nightly-{number}"))
        leaves(production, jobs[-1], summary_tar())
        production.services.clock.seconds += 86_400

    for job in (jobs[2], jobs[0], jobs[1]):
        heard(production, job)

    assert jobs == [run.job for run in production.runs()]


@pytest.mark.parametrize(("deployment", "recorded"), [("prod", 1), ("dev", 0), (None, 1)])
def test_a_job_that_followed_another_deployment_s_flag_is_left_to_that_one(
    production, deployment, recorded
):
    """Every deployment of an account hears of every job; one that names none is everybody's."""
    own = production.services.settings.stage
    told = own if deployment == "prod" else deployment
    tags = {**OWN, **({naming.TAG_DEPLOYMENT: told} if told else {})}
    job = team_job(production, tags=tags)
    leaves(production, job, summary_tar())

    heard(production, job)

    assert recorded == len(production.runs())


def test_a_parameter_that_was_overwritten_is_put_right_for_the_pipeline_s_next_run(production):
    production.promote()
    name = naming.flag_parameter(production.services.settings.stage, NAME)
    right = production.services.flags.read(name)
    production.services.flags.write(name, "on")
    job = team_job(production)
    leaves(production, job, summary_tar())

    heard(production, job)

    assert right == production.services.flags.read(name)


def test_a_parameter_that_cannot_be_put_right_loses_no_run(production):
    production.services.flags.read = forbidden
    job = team_job(production)
    leaves(production, job, summary_tar())

    assert "watch" == heard(production, job)["next"]
    assert 1 == len(production.runs())


def forbidden(name):
    raise PermissionError(name)


def test_an_early_event_is_no_end(production):
    job = team_job(production, status="InProgress")

    answer = heard(production, job)

    assert ("end", "Ignored") == (answer["next"], answer["status"])
    assert "has not ended" in answer["reason"]
    assert [] == production.runs()


@pytest.mark.parametrize(
    "tags",
    [
        {**OWN, naming.TAG_STAGE: naming.PRODUCTION_STAGE},
        {**OWN, naming.TAG_WORKLOAD: "another"},
        {"owner": "somebody"},
    ],
    ids=["production's own", "another workload's", "nobody's"],
)
def test_other_jobs_are_left_alone(production, tags):
    job = team_job(production, tags=tags)

    assert "end" == heard(production, job)["next"]
    assert [] == production.runs()


def test_a_job_of_a_workload_that_is_not_registered_is_left_alone(production):
    job = team_job(production)
    production.register(SOUND, active=False)

    answer = heard(production, job)

    assert "not in production" in answer["reason"]
    assert [] == production.runs()


def test_a_job_that_sagemaker_does_not_know_is_left_alone(production):
    assert "knows no training job" in heard(production, "nightly-0")["reason"]


def test_evidence_that_may_not_be_read_is_recorded_as_none(production):
    job = team_job(production)

    assert "end" == heard(production, job)["next"]
    (run,) = production.runs()
    assert not run.counts
    assert "no evidence" in run.reason


def test_without_an_arm_it_proves_nothing(production):
    job = team_job(production, tags={k: v for k, v in OWN.items() if k != naming.TAG_ARM})
    leaves(production, job, summary_tar())
    heard(production, job)

    (run,) = production.runs()
    assert ("unknown", False) == (run.arm, run.counts)
    assert naming.TAG_ARM in run.reason


def test_a_crash_is_a_result_and_missing_capacity_is_none(production):
    for number, reason in ((1, OUT_OF_MEMORY), (2, CAPACITY)):
        heard(production, team_job(production, f"n{number}", "Failed", FailureReason=reason))

    assert [("n1", True), ("n2", False)] == sorted(
        (run.job, run.counts) for run in production.runs()
    )
    assert [False, False] == [run.finished for run in production.runs()]


@pytest.mark.parametrize(
    "machines", [{"InstanceType": "ml.p5.48xlarge"}, {"InstanceCount": 2}], ids=["type", "count"]
)
@pytest.mark.parametrize("reason", [None, OUT_OF_MEMORY], ids=["completed", "crashed"])
def test_on_other_machines_than_its_arm_s_it_proves_nothing(production, machines, reason):
    status = {"status": "Failed", "FailureReason": reason} if reason else {"status": "Completed"}
    job = team_job(production, machines=machines, **status)
    leaves(production, job, summary_tar())
    heard(production, job)

    (run,) = production.runs()
    assert not run.counts
    assert f"compile trains on 1 of {SOUND.training.instance_type}" in run.reason
    assert str(next(iter(machines.values()))) in run.reason


@pytest.mark.parametrize(("arm", "counts"), [("compile", True), ("baseline", False)])
def test_the_candidate_s_machines_are_those_of_its_flag(production, arm, counts):
    overrides = {"compiler": "torch_compile", "instance_type": "ml.p5.48xlarge"}
    production.promote(replace(ON, overrides=overrides))
    tags = {**OWN, naming.TAG_ARM: arm}
    job = team_job(production, tags=tags, machines={"InstanceType": "ml.p5.48xlarge"})
    leaves(production, job, summary_tar())
    heard(production, job)

    assert [counts] == [run.counts for run in production.runs()]
