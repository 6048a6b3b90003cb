"""``train`` as a team calls it: a run starts, is followed, and its end is said."""

import dataclasses
import json

import pytest

from compilegate.domain import naming
from compilegate.domain.claims import run_reason
from compilegate.domain.records.production import ProductionRun, Review
from compilegate.usecases.production.begin_run import begin_run

TRAINED = {"metric": 0.913, "wall_seconds": 3903.0, "finished": True, "applied": True}


def begun(cloud, payload):
    """What TRAIN's first step does; returns the run."""
    event = {**payload, "execution": "arn:x", "started": payload["scheduled"]}
    return str(begin_run(event, services=cloud.services)["run"])


def recorded(cloud, run, *, number=0, **fields):
    """What TRAIN's last steps leave of one attempt."""
    job = f"{naming.job_base('bert-docs', run, naming.attempt(number))}-r0"
    ended = ProductionRun(
        run=run, job=job, arm="baseline", started_at=1000.0, ended_at=4903.0, result=TRAINED,
        counts=True, why="scheduled", usd=1.53, at=cloud.services.clock.now(),
    )  # fmt: skip
    ended = dataclasses.replace(ended, **fields)
    status = "Completed" if ended.status == "Completed" else "Failed"
    cloud.services.jobs.add(job, status, ended.started_at, ended.ended_at)
    key = ProductionRun.key_of(run=run, job=job)
    cloud.services.ledger.raw.put_once("bert-docs", key, ended.to_entry())


FAILED = {"status": "Failed", "result": {"metric": None, "finished": False}}


def test_progress_is_shown_while_it_trains(invoke, registered):
    jobs, logs = registered.services.jobs, registered.logs

    def train(payload):
        job = f"{naming.job_base('bert-docs', begun(registered, payload), 'p0')}-r0"
        jobs.add(job, "InProgress", 1000.0)
        logs.printed[job] = ["compilegate step=10 steps=600 seconds=0.03 loss=3.21;"]

    registered.production.executions.on_start = train
    registered.production.executions.looks = 3

    result = invoke("train", "bert-docs", "--wait")

    assert "bert-docs: training" in result.stdout
    assert "p0 baseline: step 10/600, loss 3.21" in result.stdout
    programs = invoke("train", "bert-docs", "--wait", "--json")
    assert "bert-docs" == json.loads(programs.stdout)["workload"]
    assert "bert-docs: done" in programs.stderr


@pytest.mark.parametrize(
    ("attempts", "review", "code", "said"),
    [
        (
            [{**FAILED, "arm": "compile", "reason": "CUDA out of memory", "why": "flag",
              "usd": None},
             {"number": 1, "why": "rerun", "started_at": 5000.0, "ended_at": 8903.0}],
            None, 0, ("compile, Failed, the flag is on CUDA out of memory",
                      f"baseline, Completed, {run_reason('rerun')}"),
        ),
        ([{**FAILED, "reason": "exit code 1"}], None, 1, ("exit code 1",)),
        ([{}], "revert", 12, ("judge revert",)),
    ],
    ids=["a second run", "no model", "reverted"],
)  # fmt: skip
def test_every_attempt_is_said_and_the_last_one_decides(
    *, attempts, review, code, said, invoke, registered
):
    def train(payload):
        run = begun(registered, payload)
        for attempt in attempts:
            recorded(registered, run, **attempt)
        if review:
            entry = Review(1, run, "0abc1234", "compile", verdict=review)
            registered.services.ledger.append("bert-docs", entry)

    registered.production.executions.on_start = train
    result = invoke("train", "bert-docs", "--wait")

    assert code == result.exit_code, result.output
    end = " ".join(result.stdout.split())
    assert [one for one in said if one not in end] == []


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("", "no attempt was recorded"),
        ('{"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out"}', "Task timed out"),
    ],
)
def test_an_execution_that_failed_says_why(cause, said, invoke, registered, monkeypatch):
    scripted = registered.production.executions
    scripted.ends, plain = {"bert-docs": "FAILED"}, scripted.describe
    monkeypatch.setattr(
        scripted, "describe", lambda arn: dataclasses.replace(plain(arn), cause=cause)
    )

    result = invoke("train", "bert-docs", "--wait")

    assert 1 == result.exit_code
    assert said in result.stdout
    assert "errorType" not in result.stdout
