"""Production runs as the flag says: the deployed TRAIN machine, the real Lambdas, real jobs."""

from __future__ import annotations

import uuid

import pytest

from distributions.localcloud.tests.failures import Failure, inject
from distributions.localcloud.tests.helpers import eventually, jobs_named
from tests.e2e.production import Production

pytestmark = pytest.mark.e2e


@pytest.fixture
def production(app, request):
    """Registers the stand-in script under a name of its own."""

    def register(**knobs):
        words = request.node.name.replace("test_", "").replace("_", "-")[:24].strip("-")
        return Production(app, f"{words}-{uuid.uuid4().hex[:4]}", knobs)

    return register


def test_a_run_without_a_machine_waits_and_then_trains(production, app):
    workload = production()
    inject(app.cloud.state(), Failure.NO_CAPACITY, count=1)

    workload.succeed(wait_seconds=1)
    (wait,) = workload.entries("run_waiting")
    assert ("baseline", 1) == (wait["arm"], wait["wait_seconds"])
    assert "no free instance" in wait["reason"]
    (run,) = workload.runs()
    assert ("Completed", True) == (run.status, run.counts)
    assert run.job.endswith("-p1-r0")


def test_a_candidate_that_crashes_is_recorded_and_the_run_still_has_its_model(production):
    workload = production(crash="compile")
    workload.promote()

    workload.succeed()
    crashed, again = workload.runs()
    assert ("flag", "d1") == (crashed.why, crashed.decision_id)
    assert "torch_compile" == workload.hyperparameters(crashed.job)["compiler"]
    assert ("compile", False, True) == (crashed.arm, crashed.finished, crashed.counts)
    assert "CUDA out of memory" in crashed.reason
    assert ("baseline", "rerun", True) == (again.arm, again.why, again.finished)
    assert crashed.run == again.run


def test_a_stopped_execution_is_recorded_and_its_job_stopped(production, app):
    workload = production(hang="baseline")
    execution = workload.start()
    job = wait_for_training(app, workload)
    app.client("stepfunctions").stop_execution(executionArn=execution)

    (run,) = workload.wait_for_runs(1)

    assert (job, False) == (run.job, run.counts)
    described = app.client("sagemaker").describe_training_job(TrainingJobName=job)
    assert described["TrainingJobStatus"] in ("Stopping", "Stopped")


def wait_for_training(app, workload, seconds=120.0):
    """The name of the workload's job once its script trains."""
    sagemaker = app.client("sagemaker")

    def training():
        for name in jobs_named(sagemaker, f"cg-{workload.name}-"):
            described = sagemaker.describe_training_job(TrainingJobName=name)
            if described["SecondaryStatus"] == "Training":
                return name
        return None

    return eventually(training, seconds, f"no job of {workload.name} trains")
