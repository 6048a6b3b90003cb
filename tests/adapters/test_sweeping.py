"""The daily sweep and answers to waiting state machines, against fakes of AWS."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from compilegate.adapters.sagemaker import LOG_GROUP, CloudWatchTrainingLogs, JobLogs
from compilegate.adapters.state_machines import StepFunctions
from compilegate.domain.production.orphans import ExecutionEnd

EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:compilegate-prod-evaluate:w-0mabc123"


@pytest.fixture
def aws(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield


def test_an_execution_that_runs_has_no_end_and_one_that_was_stopped_says_how(aws):
    client = boto3.client("stepfunctions")
    definition = '{"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9, "End": true}}}'
    machine = client.create_state_machine(
        name="m", definition=definition, roleArn="arn:aws:iam::123456789012:role/r"
    )["stateMachineArn"]
    arn = client.start_execution(stateMachineArn=machine, name="e", input='{"workload": "w"}')[
        "executionArn"
    ]
    ends = StepFunctions(client)

    assert ends.end_of(arn) is None
    client.stop_execution(executionArn=arn, error="Stopped", cause="by hand")
    end = ends.end_of(arn)
    assert end is not None
    assert ("ABORTED", arn, '{"workload": "w"}') == (
        end.status, end.detail["executionArn"], end.detail["input"],
    )  # fmt: skip
    assert end.at is not None


def test_what_ended_badly_has_the_fields_of_its_event_and_what_is_forgotten_no_status(aws):
    client, moment = boto3.client("stepfunctions"), datetime(2026, 11, 20, tzinfo=UTC)
    event = {
        "executionArn": EXECUTION, "status": "FAILED", "input": "{}", "error": "E", "cause": "why",
    }  # fmt: skip
    with Stubber(client) as stub:
        described = {"stateMachineArn": "m" * 9, "startDate": moment, "stopDate": moment}
        stub.add_response("describe_execution", {**described, **event})
        stub.add_client_error("describe_execution", "ExecutionDoesNotExist")
        ended, forgotten = (StepFunctions(client).end_of(EXECUTION) for _ in range(2))

    assert ExecutionEnd("FAILED", int(moment.timestamp()), event) == ended
    assert ExecutionEnd(None, None, {}) == forgotten


def test_a_retention_is_set_once_and_never_changed(aws):
    logs = boto3.client("logs")
    assert not CloudWatchTrainingLogs(logs, 30).limit_retention()  # no training job has run yet
    logs.create_log_group(logGroupName=f"{LOG_GROUP}/other")
    logs.create_log_group(logGroupName=LOG_GROUP)

    assert CloudWatchTrainingLogs(logs, 30).limit_retention()
    assert not CloudWatchTrainingLogs(logs, 90).limit_retention()
    groups = logs.describe_log_groups(logGroupNamePrefix=LOG_GROUP)["logGroups"]
    kept = {group["logGroupName"]: group.get("retentionInDays") for group in groups}
    assert {LOG_GROUP: 30, f"{LOG_GROUP}/other": None} == kept


class FakeStepFunctions:
    """Keeps what it was sent, or refuses it with this code."""

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal
        self.sent: list[dict[str, str]] = []

    def send_task_success(self, **given: str) -> dict[str, Any]:
        if self.refusal:
            error = {"Error": {"Code": self.refusal, "Message": "m"}}
            raise ClientError(error, "SendTaskSuccess")
        self.sent.append(given)
        return {"ResponseMetadata": {}}


def test_an_answer_reaches_the_waiting_state_or_says_that_none_waits() -> None:
    client = FakeStepFunctions()

    assert StepFunctions(client).send_success("t1", {"approved": True})
    assert [{"taskToken": "t1", "output": '{"approved": true}'}] == client.sent
    for code in ("TaskTimedOut", "TaskDoesNotExist"):
        assert not StepFunctions(FakeStepFunctions(code)).send_success("t", {})
    with pytest.raises(ClientError):
        StepFunctions(FakeStepFunctions("AccessDeniedException")).send_success("t", {})


class Logs:
    """CloudWatch's streams, a page for each, and what each holds."""

    def __init__(self, streams: dict[str, int]) -> None:
        self.streams, self.asked = streams, []

    def get_paginator(self, _):
        return self

    def paginate(self, *, logGroupName, logStreamNamePrefix):  # noqa: N803 - boto3's own
        assert (LOG_GROUP, "j/algo-1-") == (logGroupName, logStreamNamePrefix)
        for name, created in self.streams.items():
            yield {"logStreams": [{"logStreamName": name, "creationTime": created}]}

    def get_log_events(self, *, logGroupName, logStreamName, startFromHead, **position):  # noqa: N803
        assert (LOG_GROUP, True) == (logGroupName, startFromHead)
        self.asked.append((logStreamName, position.get("nextToken")))
        return {"events": [{"message": "line"}], "nextForwardToken": "next"}


def test_the_lines_of_a_job_are_those_of_its_machines_first_stream():
    logs = Logs({
        "j/algo-1-1": 50, "j/algo-1-9": 30, "j/algo-1-5": 40, "j/algo-1-1/profiler": 10,
    })  # fmt: skip
    watch = JobLogs(logs)

    assert (["line"], "next") == watch.lines("j", None)
    logs.streams = {"j/algo-1-0": 1}
    assert (["line"], "next") == watch.lines("j", "later")
    assert [("j/algo-1-9", None), ("j/algo-1-9", "later")] == logs.asked
    assert ((), "t") == JobLogs(Logs({})).lines("j", "t")
