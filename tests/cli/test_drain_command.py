"""``drain`` at the keyboard: what it says, its exit codes, and which commands it stops."""

import json

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import NotDeployedError
from tests.cli.project import write_project
from tests.fake_clouds import cloud
from tests.usecases.production_ledger import register

TRIAL = {"workload": "lm", "trial": "0mabc123", "spec_key": "s"}


@pytest.fixture
def stage(providers):
    """One trial, one production run that trains, one schedule."""
    providers.aws_cloud = aws = cloud(looks=99)
    register(aws.services, "lm", None)
    aws.production.schedules.put("lm", "rate(1 day)")
    start(aws, "lm-0mabc123", "cg-lm-0mabc123-q1a0-r0", trial=True)
    start(aws, "lm-night", "cg-lm-night-p0-r0", trial=False)
    return aws


def start(aws, execution, job, *, trial):
    machine = aws.executions if trial else aws.production.executions
    arn = machine.start(execution, TRIAL if trial else {"workload": "lm"})
    jobs = aws.services.jobs
    jobs.add(job, "InProgress", 1000.0)
    jobs.tag(job, {naming.TAG_EXECUTION: arn})


def test_a_run_that_trains_is_waited_for_until_the_time_is_up(invoke, stage):
    result = invoke("drain", "--timeout", "0", "--yes", "--json")

    assert 11 == result.exit_code
    document = json.loads(result.stdout)
    assert (True, False, ["lm"]) == (
        document["drained"], document["idle"], document["schedules_disabled"],
    )  # fmt: skip
    assert ["lm-0mabc123"] == document["stopped"]["executions"]
    assert [{"execution": "lm-night", "phase": "training"}] == document["in_progress"]["runs"]
    assert {} == stage.production.executions.stopped


def test_the_check_changes_nothing_and_its_exit_code_is_the_answer(invoke, stage):
    busy = invoke("drain", "--check")

    assert 11 == busy.exit_code
    assert "1 trial, 1 production run training, 2 training jobs" in busy.stdout
    assert "compilegate drain" in busy.stdout
    assert [line for line in busy.stdout.splitlines() if len(line) > 80] == []
    assert {} == stage.production.executions.stopped

    invoke("drain", "--stop-jobs", "--yes")
    assert 0 == invoke("drain", "--check").exit_code


def test_a_stage_without_a_stack_runs_nothing(invoke, providers, monkeypatch):
    def missing(stage):
        raise NotDeployedError(f"There is no stack compilegate-{stage}")

    monkeypatch.setattr(providers, "aws", missing)

    assert 0 == invoke("drain", "--check").exit_code
    assert 1 == invoke("drain", "--yes").exit_code


def test_while_drained_work_is_refused_and_undo_lets_it_start(invoke, stage, tmp_path):
    file = write_project(tmp_path)
    unasked = invoke("drain")
    assert (2, True) == (unasked.exit_code, "--yes" in unasked.stderr)
    assert json.loads(invoke("status", "--json").stdout)["drained"] is None
    invoke("drain", "--stop-jobs", "--yes")
    before = len(stage.production.executions.started)

    for command in (("run", file), ("train", "lm"), ("register", file)):
        result = invoke(*command)
        assert 1 == result.exit_code
        assert "compilegate drain --undo" in result.stderr
    assert 0 == invoke("register", file, "--dry-run").exit_code  # enables no schedule
    assert before == len(stage.production.executions.started)
    assert "Drained since" in invoke("status").stdout

    undone = invoke("drain", "--undo")

    assert (0, "1 schedule enabled" in undone.stdout) == (undone.exit_code, True)
    assert 0 == invoke("train", "lm").exit_code
    assert "was not drained" in invoke("drain", "--undo").stdout
