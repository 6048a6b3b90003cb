"""Trials on production runs: EVALUATE waits, TRAIN runs, the verdict frees the models."""

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


@pytest.fixture
def in_canary(app, request):
    """A workload that has gone through TRAIN once, and a trial of it in canary mode."""

    def begin(**knobs):
        words = request.node.name.replace("test_", "").replace("_", "-")[:22].strip("-")
        production = Production(app, f"{words}-{os.getpid() % 1000}", knobs)
        production.run()
        document = production.document() | {
            "policy": {"quality_runs": "canary"},
            "candidates": [COMPILE_CANDIDATE],
        }
        return production, app.start(document)

    return begin


def wait_for_round(production, trial, seconds=40.0):
    """Whether the trial waits for production; False once it has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        now = int(time.time())
        if open_rounds(production.app.ledger.history(production.name), now):
            return True
        states = trial.app.client("stepfunctions")
        if states.describe_execution(executionArn=trial.execution)["status"] != "RUNNING":
            return False
        time.sleep(0.1)
    raise AssertionError(f"the trial neither waits nor ends: {trial.jobs()}")


def run_production_for(production, trial):
    """Let production run as long as the trial waits for it."""
    for _ in range(MOST_RUNS):
        if not wait_for_round(production, trial):
            break
        production.succeed()
    trial.output()
    return trial.record("decision")


def quality_runs(trial):
    """(arm, mode) of every full run in the evidence, in the order of time."""
    arms = trial.record("evidence")["arms"]
    runs = [(run["order"], arm["name"], run["mode"])
             for arm in arms for run in arm["runs"] if run["stage"] == "quality"]  # fmt: skip
    return [rest for _, *rest in sorted(runs)]


def tags_of(job, sagemaker):
    arn = sagemaker.describe_training_job(TrainingJobName=job)["TrainingJobArn"]
    return {tag["Key"]: tag["Value"] for tag in sagemaker.list_tags(ResourceArn=arn)["Tags"]}


def candidate_jobs(production):
    return [run.job for run in production.runs() if run.arm == "compile"]


def test_production_runs_take_a_trial_to_its_promotion(in_canary, app):
    production, trial = in_canary()
    assert wait_for_round(production, trial)
    production.run()
    (first,) = candidate_jobs(production)
    sagemaker = app.client("sagemaker")
    assert not may_release(first, client=sagemaker)
    tags = tags_of(first, sagemaker)
    assert ("compile", trial.trial) == (tags["compilegate:arm"], tags["compilegate:trial"])

    decision = run_production_for(production, trial)

    assert ("promote", "compile") == (decision["verdict"], decision["candidate"]), decision[
        "reasons"
    ]
    assert {"canary"} == {mode for _, mode in quality_runs(trial)}
    jobs = map(naming.parse_run, (job.rpartition("-r")[0] for job in trial.jobs()))
    assert all(run.is_speed for run in jobs)  # it made no full run itself
    arms = [name for name, _ in quality_runs(trial)]
    assert ["compile", "baseline", "baseline", "compile"] == arms[:4]
    assert "torch_compile" == trial.flag()["overrides"]["compiler"]
    made = candidate_jobs(production)
    assert len(made) > 1
    assert all(may_release(job, client=sagemaker) for job in made)
    # Nothing but the short blocks was paid for.
    plan = trial.record("evidence")["plan"]
    assert set(plan["usd_by_job"]) == {trial.job(name) for name in trial.jobs()}
    assert "Canary and production runs" in trial.report("html")


def test_a_candidate_that_crashes_is_lost_and_the_run_still_has_its_model(in_canary, app):
    production, trial = in_canary(crash="compile")

    decision = run_production_for(production, trial)

    assert "stay_off" == decision["verdict"], decision["reasons"]
    assert "candidate_crashed" == decision["reasons"][0]["code"]
    *_, crashed, again = production.runs()
    assert ("compile", False) == (crashed.arm, crashed.finished)
    assert ("baseline", True, crashed.run) == (again.arm, again.finished, again.run)
    usd = trial.record("evidence")["plan"]["usd_by_job"]
    assert usd[crashed.job] == pytest.approx(crashed.usd)
    assert again.job not in usd
    assert not may_release(crashed.job, client=app.client("sagemaker"))
    assert may_release(again.job, client=app.client("sagemaker"))
    assert trial.flag() is None


def test_a_stopped_trial_gives_production_back_at_once(in_canary, app):
    production, trial = in_canary()
    assert wait_for_round(production, trial)
    production.run()
    (held,) = candidate_jobs(production)

    app.client("stepfunctions").stop_execution(executionArn=trial.execution)
    trial.wait_until_released()
    production.run()

    last = production.runs()[-1]
    assert ("baseline", None) == (last.arm, last.canary)
    (canary_round,) = list(app.ledger.history(production.name).rounds)
    assert "aborted" == canary_round.closed
    assert not may_release(held, client=app.client("sagemaker"))
    assert "rejected" == tags_of(held, app.client("sagemaker"))["compilegate:release"]
    assert held in [run.job for run in production.runs()]
