"""``train`` as a team calls it: a run starts, is followed, and its end is said."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from compilegate.cli.common.cloud import Cloud
from compilegate.domain import naming
from compilegate.domain.claims import run_reason
from compilegate.domain.records.production import ProductionRun, Review
from compilegate.usecases.production.begin_run import begin_run
from tests.cli.conftest import Invoke
from tests.fake_clouds import ScriptedExecutions, ScriptedLogs
from tests.fakes import FixedClock, MemoryJobs

TRAINED = {"metric": 0.913, "wall_seconds": 3903.0, "finished": True, "applied": True}


def executions(cloud: Cloud) -> ScriptedExecutions:
    document = cloud.production.executions
    assert isinstance(document, ScriptedExecutions)
    return document


def begun(cloud: Cloud, payload: Any) -> str:
    """What TRAIN's first step does; returns the run."""
    event = {**payload, "execution": "arn:x", "started": payload["scheduled"]}
    return str(begin_run(event, services=cloud.services)["run"])


def recorded(cloud: Cloud, run: str, *, number: int = 0, **fields: Any) -> None:
    """What TRAIN's last steps leave of one attempt."""
    job = f"{naming.job_base('bert-docs', run, naming.attempt(number))}-r0"
    jobs, clock = cloud.services.jobs, cloud.services.clock
    assert isinstance(jobs, MemoryJobs)
    assert isinstance(clock, FixedClock)
    ended = ProductionRun(
        run=run, job=job, arm="baseline", started_at=1000.0, ended_at=4903.0, result=TRAINED,
        counts=True, why="scheduled", usd=1.53,
    )  # fmt: skip
    ended = dataclasses.replace(ended, **fields)
    status = "Completed" if ended.status == "Completed" else "Failed"
    jobs.add(job, status, ended.started_at, ended.ended_at)
    entry = dataclasses.replace(ended, at=clock.now()).to_entry()
    cloud.services.ledger.raw.put_once("bert-docs", ProductionRun.key_of(run=run, job=job), entry)


def test_a_run_starts_and_is_named(invoke: Invoke, registered: Cloud) -> None:
    result = invoke("train", "bert-docs")

    ((arn, payload),) = executions(registered).started.items()
    run = arn.rpartition("-")[2]
    assert 0 == result.exit_code
    assert f"bert-docs: run {run} has started." in result.stdout
    assert begun(registered, payload) == run  # the machine comes to the same name


def test_the_end_says_arm_why_metric_time_price_and_flag(invoke: Invoke, registered: Cloud) -> None:
    executions(registered).on_start = lambda payload: recorded(
        registered, begun(registered, payload)
    )

    result = invoke("train", "bert-docs", "--wait")

    end = " ".join(result.stdout.split("\n\n")[-1].split())
    assert 0 == result.exit_code, result.output
    assert "trained baseline (the flag is off)" in end
    assert "metric 0.913" in end
    assert "wall clock 1:05:03" in end
    assert "cost $1.53" in end
    assert "flag off" in end


def test_progress_is_shown_while_it_trains(invoke: Invoke, registered: Cloud) -> None:
    jobs, logs = registered.services.jobs, registered.logs
    assert isinstance(jobs, MemoryJobs)
    assert isinstance(logs, ScriptedLogs)

    def train(payload: Any) -> None:
        job = f"{naming.job_base('bert-docs', begun(registered, payload), 'p0')}-r0"
        jobs.add(job, "InProgress", 1000.0)
        logs.printed[job] = ["compilegate step=10 steps=600 seconds=0.03 loss=3.21;"]

    executions(registered).on_start = train
    executions(registered).looks = 3

    result = invoke("train", "bert-docs", "--wait")

    assert "bert-docs: training" in result.stdout
    assert "p0 baseline: step 10/600, loss 3.21" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_candidate_that_failed_and_its_second_run_are_both_said(
    invoke: Invoke, registered: Cloud
) -> None:
    def train(payload: Any) -> None:
        run = begun(registered, payload)
        failed = {"metric": None, "finished": False}
        recorded(registered, run, arm="compile", status="Failed", reason="CUDA out of memory",
                 result=failed, why="flag", usd=None)  # fmt: skip
        recorded(registered, run, number=1, why="rerun", started_at=5000.0, ended_at=8903.0)

    executions(registered).on_start = train

    result = invoke("train", "bert-docs", "--wait")

    end = " ".join(result.stdout.split())
    assert 0 == result.exit_code, result.output
    assert "compile, Failed, the flag is on CUDA out of memory" in end
    assert f"baseline, Completed, {run_reason('rerun')}" in end


def test_a_run_without_a_model_is_exit_1_with_the_reason(invoke: Invoke, registered: Cloud) -> None:
    def train(payload: Any) -> None:
        result = {"metric": None, "finished": False}
        run = begun(registered, payload)
        recorded(registered, run, status="Failed", reason="exit code 1", result=result)

    executions(registered).on_start = train

    result = invoke("train", "bert-docs", "--wait")

    assert 1 == result.exit_code
    assert "exit code 1" in result.stdout


def test_an_execution_that_failed_says_why(invoke: Invoke, registered: Cloud) -> None:
    executions(registered).ends = {"bert-docs": "FAILED"}

    result = invoke("train", "bert-docs", "--wait")

    assert 1 == result.exit_code
    assert "no attempt was recorded" in result.stdout


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_cause_that_is_json_is_said_in_its_own_words(
    arguments: tuple[str, ...], invoke: Invoke, registered: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = executions(registered)
    scripted.ends = {"bert-docs": "FAILED"}
    plain = scripted.describe
    cause = json.dumps({"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out"})

    def describe(arn: str) -> Any:
        return dataclasses.replace(plain(arn), cause=cause)

    monkeypatch.setattr(scripted, "describe", describe)
    result = invoke("train", "bert-docs", "--wait", *arguments)

    assert 1 == result.exit_code
    assert "Task timed out" in result.stdout
    assert "errorType" not in result.stdout


def test_a_run_that_reverts_exits_12(invoke: Invoke, registered: Cloud) -> None:
    def train(payload: Any) -> None:
        run = begun(registered, payload)
        recorded(registered, run)
        review = Review(1, run, "0abc1234", "compile", verdict="revert")
        registered.services.ledger.append("bert-docs", review)

    executions(registered).on_start = train

    result = invoke("train", "bert-docs", "--wait")

    assert 12 == result.exit_code
    assert "judge revert" in " ".join(result.stdout.split())


def test_json_is_one_document(invoke: Invoke, registered: Cloud) -> None:
    executions(registered).on_start = lambda payload: recorded(
        registered, begun(registered, payload)
    )

    result = invoke("train", "bert-docs", "--wait", "--json")

    document = json.loads(result.stdout)
    assert ("bert-docs", "baseline", "scheduled", "SUCCEEDED") == (
        document["workload"], document["arm"], document["why"], document["status"],
    )  # fmt: skip
    assert [0.913] == [attempt["result"]["metric"] for attempt in document["attempts"]]
    assert "bert-docs: done" in result.stderr
