"""Connecting to a stage, and what is read from AWS while a trial runs, against moto."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from compilegate.adapters import clients
from compilegate.adapters.dynamodb import DynamoDbLedger, DynamoDbLocks, DynamoDbOverview
from compilegate.adapters.executions import StepFunctionsExecutions
from compilegate.adapters.training_logs import LOG_GROUP, CloudJobWatch
from compilegate.cli.common import connect
from compilegate.domain.errors import EnvironmentNotReadyError, NotFoundError
from tests.cli.test_deployed_stack import cloudformation

REGION = "eu-west-1"
OUTPUTS = {
    "DataBucket": "data", "LedgerTable": "ledger", "TrainingRole": "arn:aws:iam::1:role/t",
    "EvaluateStateMachine": "arn:aws:states:eu-west-1:123456789012:stateMachine:evaluate",
}  # fmt: skip


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    clients.client.cache_clear()
    with mock_aws():
        yield
    clients.client.cache_clear()


def test_a_stage_is_found_by_its_stacks_outputs(aws: None) -> None:
    outputs = connect.stack_outputs(cloudformation(outputs=OUTPUTS), "dev")
    cloud = connect.cloud_of(outputs, "dev", 5.0)

    assert ("data", "dev", REGION) == (
        cloud.services.store.bucket,
        cloud.services.settings.stage,
        cloud.services.settings.region,
    )
    assert not cloud.is_local


def test_a_stack_of_another_version_is_refused() -> None:
    outputs = {name: value for name, value in OUTPUTS.items() if name != "LedgerTable"}

    with pytest.raises(EnvironmentNotReadyError, match="no output LedgerTable"):
        connect.cloud_of(outputs, "dev", 5.0)


def test_executions_are_started_found_and_stopped(aws: None) -> None:
    client = boto3.client("stepfunctions", region_name=REGION)
    machine = client.create_state_machine(
        name="evaluate", roleArn="arn:aws:iam::123456789012:role/x",
        definition=json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}),
    )["stateMachineArn"]  # fmt: skip
    executions = StepFunctionsExecutions(client, machine)

    arn = executions.start("lm-0abc1234", {"workload": "lm"})
    running = executions.running()
    executions.stop(arn, "by hand")

    assert ["lm-0abc1234"] == [state.name for state in running]
    assert ("ABORTED", False) == (executions.describe(arn).status, executions.describe(arn).running)
    with pytest.raises(NotFoundError):
        executions.describe(arn.replace("lm-", "no-"))


class OneJobPerPage:
    """SageMaker's list with a name that merely contains the prefix."""

    def get_paginator(self, operation: str) -> OneJobPerPage:
        return self

    def paginate(self, **asked: Any) -> list[dict[str, Any]]:
        names = ["cg-lm-1-s0-r0", "old-cg-lm-1-s0-r0", "cg-lm-1-q0a-r0"]
        return [{"TrainingJobSummaries": [{"TrainingJobName": name}]} for name in names]


def test_jobs_are_those_whose_names_begin_with_the_prefix() -> None:
    watch = CloudJobWatch(OneJobPerPage(), io)

    assert ["cg-lm-1-s0-r0", "cg-lm-1-q0a-r0"] == watch.names("cg-lm-1-")


def test_a_jobs_lines_are_read_once_each(aws: None) -> None:
    logs = boto3.client("logs", region_name=REGION)
    watch = CloudJobWatch(None, logs)
    before = watch.lines("job", None)
    logs.create_log_group(logGroupName=LOG_GROUP)
    without_stream = watch.lines("job", None)
    stream = {"logGroupName": LOG_GROUP, "logStreamName": "job/algo-1-1700000000"}
    logs.create_log_stream(**stream)
    now = int(time.time() * 1000)
    put = lambda *lines: logs.put_log_events(  # noqa: E731 - said twice, two lines long
        logEvents=[{"timestamp": now, "message": line} for line in lines], **stream
    )

    put("one", "two")
    first, token = watch.lines("job", None)
    put("three")
    second, _ = watch.lines("job", token)

    assert (((), None), ((), None)) == (before, without_stream)
    assert (["one", "two"], ["three"]) == (first, second)


def test_the_ledger_at_a_glance(aws: None) -> None:
    client = boto3.client("dynamodb", region_name=REGION)
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    client.create_table(
        TableName="ledger", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n, _ in keys],
    )  # fmt: skip
    ledger, locks = DynamoDbLedger(client, "ledger"), DynamoDbLocks(client, "ledger")
    for workload, sort_key in (("b", "trial#1#started"), ("a", "trial#1#started"), ("b", "x")):
        ledger.put_once(workload, sort_key, {"kind": "started"})
    locks.acquire("b", "arn:execution", now=1, expires_at=100)

    overview = DynamoDbOverview(client, "ledger")

    assert ["a", "b"] == overview.workloads()
    assert [("b", "arn:execution", 100)] == [
        (lock.workload, lock.owner, lock.expires_at) for lock in overview.locks()
    ]


def test_production_starts_what_the_outputs_name(aws: None) -> None:
    machine = "arn:aws:states:eu-west-1:123456789012:stateMachine:train"
    role = "arn:aws:iam::123456789012:role/scheduler"
    scheduler = boto3.client("scheduler", region_name=REGION)
    scheduler.create_schedule_group(Name="compilegate-dev")
    outputs = {
        **OUTPUTS, "TrainStateMachine": machine, "ScheduleGroup": "compilegate-dev",
        "SchedulerRole": role,
    }  # fmt: skip

    connect.cloud_of(outputs, "dev", 5.0).with_production().schedules.put("lm", "rate(7 days)")

    found = scheduler.get_schedule(Name="lm", GroupName="compilegate-dev")["Target"]
    assert (machine, role) == (found["Arn"], found["RoleArn"])


def test_a_stack_from_before_production_serves_every_other_command(aws: None) -> None:
    cloud = connect.cloud_of(OUTPUTS, "dev", 5.0)

    with pytest.raises(EnvironmentNotReadyError, match="compilegate-dev cannot start production"):
        cloud.with_production()
