"""Whatever fails: jobs stopped, reason recorded, lock released, flag unchanged or as decided."""

from __future__ import annotations

import json
import time

import pytest

from compilegate.adapters.state_machines import StepFunctionsExecutions
from compilegate.domain import naming
from distributions.localcloud.tests.failures import Failure, inject, kill_job
from distributions.localcloud.tests.helpers import eventually
from tests.e2e.conftest import Running

pytestmark = pytest.mark.e2e
CANDIDATE = 1


def assert_cleaned_up(running):
    running.wait_until_released()
    assert "InProgress" not in running.jobs().values()
    assert running.flag() is None


def test_a_killed_job_is_a_result_of_its_arm(trial, app):
    running = trial(hang="compile")
    job = running.wait_for_full_run(CANDIDATE)
    describe = app.client("sagemaker").describe_training_job
    while describe(TrainingJobName=job)["SecondaryStatus"] == "Training":
        kill_job(app.cloud.state(), job)  # in vain until the job's process is there
        time.sleep(0.2)
    running.wait()

    assert "stay_off" == running.record("decision")["verdict"]
    assert_cleaned_up(running)


def test_a_stopped_execution_leaves_nothing_running_and_says_who_stopped_it(trial, app):
    running = trial(hang="compile")
    running.wait_for_full_run(CANDIDATE)
    app.client("stepfunctions").stop_execution(executionArn=running.execution)

    assert "ABORTED" == running.wait()["status"]
    assert_cleaned_up(running)
    assert "stopped by hand" in running.entries()["failed"]["reason"]


def test_a_job_stopped_by_hand_fails_the_trial_and_is_no_verdict(trial, app):
    running = trial(hang="compile")
    job = running.wait_for_full_run(CANDIDATE)
    app.client("sagemaker").stop_training_job(TrainingJobName=job)

    ended = running.wait()
    assert "FAILED" == ended["status"]
    assert "stopped before the end" in ended["cause"]
    assert "decision" not in running.entries()
    assert_cleaned_up(running)


def test_a_second_trial_of_the_workload_is_refused_and_the_first_goes_on(trial, app):
    first = trial(hang="compile")
    first.wait_for_full_run(CANDIDATE)
    second = trial(name=first.workload)

    refused = second.wait()
    # No alarm for it: CloudWatch counts executions that failed.
    assert "SUCCEEDED" == refused["status"]
    reason = json.loads(refused["output"])[naming.REFUSED]
    assert "WorkloadLockedError" == reason["error"]
    assert "already being evaluated" in reason["cause"]
    assert first.trial in reason["cause"]
    outcome = StepFunctionsExecutions(app.client("stepfunctions"), "").describe(second.execution)
    assert ("FAILED", reason["cause"]) == (outcome.status, outcome.cause)
    time.sleep(1)  # the second's end must not give the first's lock away
    assert first.lock() is not None
    assert "InProgress" in first.jobs().values()

    app.client("stepfunctions").stop_execution(executionArn=first.execution)
    assert_cleaned_up(first)


@pytest.mark.parametrize(
    ("failure", "jobs"),
    [
        (Failure.THROTTLED, {"s0-r1": "Completed"}),
        (Failure.LIMIT_EXCEEDED, {"s0-r1": "Completed"}),
        (Failure.NO_CAPACITY, {"s0-r0": "Failed", "s1-r0": "Completed"}),
    ],
)
def test_a_refused_request_is_made_again_and_a_round_without_capacity_repeated(
    trial, app, failure, jobs
):
    inject(app.cloud.state(), failure, count=1)
    running = trial(speedup=0.9)

    assert "stay_off" == running.decision()["verdict"]
    assert jobs == running.jobs()


def test_a_failing_function_is_caught_and_explained(app):
    trial_id = naming.trial_id(int(time.time() * 1000))
    spec_key = naming.spec_key("no-such-spec", "none")
    start = {"workload": "no-such-spec", "trial": trial_id, "spec_key": spec_key}
    execution = app.client("stepfunctions").start_execution(
        stateMachineArn=app.outputs["EvaluateStateMachine"],
        name=naming.execution_name("no-such-spec", trial_id),
        input=json.dumps(start),
    )["executionArn"]
    running = Running(app, "no-such-spec", trial_id, execution)

    ended = running.wait()
    assert "FAILED" == ended["status"]
    assert "does not exist" in ended["cause"]
    assert_cleaned_up(running)


def test_a_report_that_cannot_be_written_does_not_unsay_the_decision(trial, app):
    running = trial(slow="compile")
    running.wait_for_full_run(CANDIDATE)
    app.store.put(naming.record_key(running.workload, running.trial, "eligibility"), b"{")
    output = running.output()
    assert "JSONDecodeError" == output["report_failed"]["error"]
    assert (None, None, None) == tuple(
        output[name] for name in ("report_key", "notify_failed", "release_failed")
    )
    assert ("promote", True) == (output["verdict"], output["flag_enabled"])
    assert running.flag()["enabled"]
    assert {"started", "decision", "flag"} == set(running.entries())
    assert running.lock() is None


def test_a_job_without_a_waiting_execution_is_stopped_and_paid_for(trial, app):
    """As a lost answer of CreateTrainingJob leaves one behind."""
    running = trial(slow="compile")
    running.wait_for_full_run(CANDIDATE, 60)
    # What is asked for next is a full run: a speed job does not know the knob below, and fails.
    inject(app.cloud.state(), Failure.THROTTLED, count=1)
    second_try = eventually(
        lambda: next((job for job in running.jobs() if job.endswith("-r1")), None), 60,
        "no job is asked for again",
    )  # fmt: skip
    run = second_try.removesuffix("-r1")
    request = running.request(run)
    arm = "compile" if naming.parse_run(run).arm_index == CANDIDATE else "baseline"
    request["HyperParameters"]["hang"] = json.dumps(arm)
    duplicate = running.job(f"{run}-r0")
    app.client("sagemaker").create_training_job(**{**request, "TrainingJobName": duplicate})
    running.output()
    plan = running.record("evidence")["plan"]
    assert plan["usd_by_job"][duplicate] > 0
    assert sum(plan["usd_by_job"].values()) == pytest.approx(plan["spent_usd"])
    running.wait_until_released()
    assert running.jobs()[f"{run}-r0"] in ("Stopping", "Stopped")
    assert "promote" == running.record("decision")["verdict"]
