"""A trial on production runs: EVALUATE waits, TRAIN runs, the verdict frees the models."""

from __future__ import annotations

import os
import time

import pytest

from compilegate.domain import naming
from compilegate.domain.production.canary import open_rounds
from compilegate.flags import may_release
from tests.e2e.conftest import COMPILE_CANDIDATE
from tests.e2e.production import Production

pytestmark = pytest.mark.e2e
MOST_RUNS = 12


def wait_for_round(production, trial, seconds=120.0):
    """Whether the trial waits for production; False once it has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        now = int(time.time())
        if open_rounds(production.app.ledger.history(production.name), now):
            return True
        states = trial.app.client("stepfunctions")
        if states.describe_execution(executionArn=trial.execution)["status"] != "RUNNING":
            return False
        time.sleep(0.4)
    raise AssertionError(f"the trial neither waits nor ends: {trial.jobs()}")


def candidate_jobs(production):
    return [run.job for run in production.runs() if run.arm == "compile"]


def test_production_runs_take_a_trial_to_its_promotion(app):
    production = Production(app, f"canary-{os.getpid() % 1000}")
    production.run()
    policy = {"policy": {"quality_runs": "canary"}, "candidates": [COMPILE_CANDIDATE]}
    trial = app.start(production.document() | policy)
    assert wait_for_round(production, trial)
    production.run()
    (first,) = candidate_jobs(production)
    sagemaker = app.client("sagemaker")
    assert not may_release(first, client=sagemaker)

    for _ in range(MOST_RUNS):
        if not wait_for_round(production, trial):
            break
        production.succeed()
    trial.output()
    decision, evidence = trial.record("decision"), trial.record("evidence")

    assert ("promote", "compile") == (decision["verdict"], decision["candidate"]), decision[
        "reasons"
    ]
    runs = [run for arm in evidence["arms"] for run in arm["runs"] if run["stage"] == "quality"]
    assert {"canary"} == {run["mode"] for run in runs}
    jobs = map(naming.parse_run, (job.rpartition("-r")[0] for job in trial.jobs()))
    assert all(run.is_speed for run in jobs)  # it made no full run itself
    assert "torch_compile" == trial.flag()["overrides"]["compiler"]
    made = candidate_jobs(production)
    assert len(made) > 1
    assert all(may_release(job, client=sagemaker) for job in made)
    # Nothing but the short blocks was paid for.
    assert {trial.job(name) for name in trial.jobs()} == set(evidence["plan"]["usd_by_job"])
