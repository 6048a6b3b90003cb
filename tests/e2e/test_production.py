"""Production runs as the flag says: the deployed TRAIN machine, the real Lambdas, real jobs."""

from __future__ import annotations

import json
import uuid

import pytest

from compilegate.domain import naming
from distributions.localcloud.tests.failures import Failure, inject
from distributions.localcloud.tests.helpers import eventually, jobs_named
from tests.e2e.production import Production

pytestmark = pytest.mark.e2e


@pytest.fixture
def production(app, request):
    """Registers the stand-in script under a name of its own."""

    def register(*, training=None, **knobs):
        words = request.node.name.replace("test_", "").replace("_", "-")[:24].strip("-")
        return Production(app, f"{words}-{uuid.uuid4().hex[:4]}", knobs, training or {})

    return register


def test_without_a_flag_the_baseline_is_trained_and_recorded(production, app):
    workload = production()

    workload.succeed()
    (run,) = workload.runs()
    assert ("baseline", "scheduled", "Completed", True, True) == (
        run.arm, run.why, run.status, run.counts, run.finished,
    )  # fmt: skip
    assert run.result["metric"] == pytest.approx(2.5, abs=0.05)
    assert run.usd > 0
    assert "none" == workload.hyperparameters(run.job)["compiler"]
    assert run.details["model"].startswith(f"s3://{app.store.bucket}/production/{workload.name}/")
    assert app.store.exists(run.details["model"])


def test_with_the_flag_on_the_candidate_is_trained_with_its_overrides(production):
    workload = production()
    workload.promote()

    workload.succeed()
    (run,) = workload.runs()
    assert ("compile", "flag", True, "d1") == (run.arm, run.why, run.counts, run.decision_id)
    assert "torch_compile" == workload.hyperparameters(run.job)["compiler"]
    assert run.result["applied"] is True


def test_a_malformed_flag_is_the_baseline_and_is_repaired(production, app):
    workload = production()
    workload.promote()
    workload.set_flag("{on")

    workload.succeed()
    (run,) = workload.runs()
    (begun,) = workload.entries("run_begun")
    assert ("baseline", "malformed", "{on") == (run.arm, begun["flag_problem"], begun["flag"])
    name = naming.flag_parameter("local", workload.name)
    repaired = app.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    assert workload.entries("flag")[0]["to"] == repaired


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(Failure.NO_CAPACITY, "no free instance"), (Failure.LIMIT_EXCEEDED, "Service Quotas")],
)
def test_a_run_without_a_machine_waits_and_then_trains(production, app, failure, reason):
    workload = production()
    inject(app.cloud.state(), failure, count=1)

    workload.succeed(wait_seconds=1)
    (wait,) = workload.entries("run_waiting")
    assert ("baseline", 1) == (wait["arm"], wait["wait_seconds"])
    assert reason in wait["reason"]
    (run,) = workload.runs()
    assert ("Completed", True) == (run.status, run.counts)
    assert run.job.endswith("-p1-r0")


def test_a_throttled_call_is_retried_without_a_wait(production, app):
    workload = production()
    inject(app.cloud.state(), Failure.THROTTLED, count=1)

    workload.succeed()
    assert [] == workload.entries("run_waiting")
    assert [True] == [run.job.endswith("-p0-r1") for run in workload.runs()]


def test_a_fallback_type_trains_the_baseline_and_is_no_evidence(production, app):
    workload = production(training={"fallback_instances": ["ml.g5.2xlarge"]})
    workload.promote()
    inject(app.cloud.state(), Failure.NO_CAPACITY, count=1)

    workload.succeed(wait_seconds=1)
    (run,) = workload.runs()
    assert ("baseline", "fallback", "ml.g5.2xlarge", False) == (
        run.arm, run.why, run.instance_type, run.counts,
    )  # fmt: skip
    assert "no evidence" in run.reason


def test_a_candidate_that_crashes_is_recorded_and_the_run_still_has_its_model(production):
    workload = production(crash="compile")
    workload.promote()

    workload.succeed()
    crashed, again = workload.runs()
    assert ("compile", False, True) == (crashed.arm, crashed.finished, crashed.counts)
    assert "CUDA out of memory" in crashed.reason
    assert ("baseline", "rerun", True) == (again.arm, again.why, again.finished)
    assert crashed.run == again.run


def test_a_baseline_that_crashes_is_notified_and_not_run_again(production):
    workload = production(crash="baseline")

    ended = workload.run()

    assert "FAILED" == ended["status"]
    assert "CUDA out of memory" in ended["cause"]
    assert [("baseline", False, True)] == [(r.arm, r.finished, r.counts) for r in workload.runs()]


def test_a_stopped_job_stays_stopped_and_is_no_evidence(production, app):
    workload = production(hang="baseline")
    execution = workload.start()
    job = wait_for_training(app, workload)
    app.client("sagemaker").stop_training_job(TrainingJobName=job)

    ended = workload.wait(execution)

    assert ("SUCCEEDED", "Stopped") == (ended["status"], ended["output"]["status"])
    assert [(job, "Stopped", False)] == [(r.job, r.status, r.counts) for r in workload.runs()]


def test_a_stopped_execution_is_recorded_and_its_job_stopped(production, app):
    workload = production(hang="baseline")
    execution = workload.start()
    job = wait_for_training(app, workload)
    app.client("stepfunctions").stop_execution(executionArn=execution)

    (run,) = workload.wait_for_runs(1)

    assert (job, False) == (run.job, run.counts)
    described = app.client("sagemaker").describe_training_job(TrainingJobName=job)
    assert described["TrainingJobStatus"] in ("Stopping", "Stopped")


def test_a_job_that_a_team_starts_is_recorded_once_and_our_own_is_none(production, app):
    workload = production()
    workload.run()
    (own,) = workload.runs()
    ended = workload.run(job=own.job)
    assert ("Ignored", [own]) == (ended["output"]["status"], workload.runs())
    job = start_team_job(app, workload, own.job)

    runs = workload.wait_for_runs(2)

    (team,) = [run for run in runs if run.launched_by == "team"]
    assert (job, "compile", "team", True) == (team.job, team.arm, team.why, team.counts)
    again = workload.run(job=job)  # an event that comes a second time
    assert "SUCCEEDED" == again["status"], again.get("cause")
    assert 2 == len(workload.runs())


def test_a_step_that_breaks_is_reported_with_what_to_do(production, app):
    workload = production()
    execution = app.client("stepfunctions").start_execution(
        stateMachineArn=app.outputs["TrainStateMachine"],
        input=json.dumps({"workload": "never-registered"}),
    )["executionArn"]

    ended = workload.wait(execution)

    assert "FAILED" == ended["status"]
    assert "compilegate register" in ended["cause"]
    assert {"BeginRun": "failed", "NotifyBroken": "succeeded"} == tasks(app, execution)


def test_a_run_that_cannot_be_judged_is_recorded_and_reported(production, app):
    workload = production()
    # A promotion whose trial has left no records: the judge has nothing to compare with.
    workload.promote(trial="00000000")

    execution = workload.start()
    ended = workload.wait(execution)

    assert "SUCCEEDED" == ended["status"], ended.get("cause")
    assert ended["output"]["review_failed"]["error"]
    assert ended["output"]["notify_failed"] is None
    states = tasks(app, execution)
    assert ("failed", "succeeded") == (states["ReviewProduction"], states["TellOfReview"])
    assert ["Completed"] == [run.status for run in workload.runs()]


def tasks(app, execution):
    """How each task of an execution ended, by its state's name."""
    pages = app.client("stepfunctions").get_paginator("get_execution_history")
    history = pages.paginate(executionArn=execution).build_full_result()["events"]
    ended, name = {}, ""
    for event in history:
        name = event.get("stateEnteredEventDetails", {}).get("name", name)
        if event["type"] in ("TaskSucceeded", "TaskFailed"):
            ended[name] = event["type"].removeprefix("Task").lower()
    return ended


def wait_for_training(app, workload, seconds=30.0):
    """The name of the workload's job once its script trains."""
    sagemaker = app.client("sagemaker")

    def training():
        for name in jobs_named(sagemaker, f"cg-{workload.name}-"):
            described = sagemaker.describe_training_job(TrainingJobName=name)
            if described["SecondaryStatus"] == "Training":
                return name
        return None

    return eventually(training, seconds, f"no job of {workload.name} trains")


def start_team_job(app, workload, like):
    """A pipeline of the team's starts a job like ``like``, with the candidate's compiler."""
    sagemaker = app.client("sagemaker")
    described = sagemaker.describe_training_job(TrainingJobName=like)
    kept = (
        "RoleArn", "AlgorithmSpecification", "Environment", "OutputDataConfig", "ResourceConfig",
        "StoppingCondition", "HyperParameters",
    )  # fmt: skip
    compiled = {"arm": '"compile"', "compiler": '"torch_compile"', "seed": "7"}
    tags = {
        naming.TAG_STAGE: naming.TEAM_STAGE,
        naming.TAG_WORKLOAD: workload.name,
        naming.TAG_ARM: "compile",
    }
    name = f"nightly-{workload.name}"
    request = {key: described[key] for key in kept}
    sagemaker.create_training_job(
        **{**request, "HyperParameters": {**request["HyperParameters"], **compiled}},
        TrainingJobName=name,
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )
    return name
