"""A team's pipeline reads the flag of the deployed app, starts its job, and the run is recorded."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from compilegate.flags import training_job_request
from compilegate.flags.reading import forget
from tests.e2e.production import COMPILE, Production

pytestmark = pytest.mark.e2e


def test_the_flag_reaches_a_team_s_job_and_its_run_the_ledger(app):
    workload = Production(app, f"team-pipeline-{os.getpid() % 1000}")
    workload.run()
    (own,) = workload.runs()
    today = request_like(app, own.job)

    start(app, workload.name, today, "nightly-1")
    workload.promote(replace(COMPILE, state="permanent"))
    start(app, workload.name, today, "nightly-2")
    runs = {run.job: run for run in workload.wait_for_runs(3)}

    before, after = (runs[f"{workload.name}-nightly-{number}"] for number in (1, 2))
    assert ("baseline", None, "team") == (before.arm, before.decision_id, before.launched_by)
    assert ("compile", "d1", "team") == (after.arm, after.decision_id, after.launched_by)
    assert (True, True) == (before.counts, after.counts)
    assert after.result["applied"] is True


def start(app, workload, request, name):
    """What the team's pipeline does every night."""
    forget()
    job = training_job_request(workload, request, stage="local", client=app.client("ssm"))
    app.client("sagemaker").create_training_job(**job, TrainingJobName=f"{workload}-{name}")


def request_like(app, job):
    """The request of the team's own job: the baseline's, without anything of ours beside it."""
    described = app.client("sagemaker").describe_training_job(TrainingJobName=job)
    kept = (
        "RoleArn", "AlgorithmSpecification", "OutputDataConfig", "ResourceConfig",
        "StoppingCondition", "HyperParameters",
    )  # fmt: skip
    return {key: described[key] for key in kept}
