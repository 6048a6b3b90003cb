"""Executions, answers to those that wait, and logs of training jobs, against fakes of AWS."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from compilegate.adapters.sagemaker import LOG_GROUP, CloudWatchTrainingLogs, JobLogs
from compilegate.adapters.state_machines import StepFunctions, StepFunctionsExecutions
from compilegate.domain.errors import NotFoundError
from compilegate.domain.production.orphans import FORGOTTEN, NOT_ENDED, ExecutionEnd

EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:compilegate-prod-evaluate:w-0mabc123"


def test_executions_are_started_listed_described_and_stopped_and_end_once(aws):
    client = boto3.client("stepfunctions")
    definition = '{"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9, "End": true}}}'
    machines = [
        client.create_state_machine(
            name=name, definition=definition, roleArn="arn:aws:iam::123456789012:role/r"
        )["stateMachineArn"]
        for name in ("evaluate", "train")
    ]
    executions, other = (StepFunctionsExecutions(client, machine) for machine in machines)
    ends, began = StepFunctions(client), time.time()

    arn = executions.start("lm-0abc1234", {"workload": "lm"})
    (state,) = executions.running()
    assert ("lm-0abc1234", True, False, None) == (
        state.name, state.running, state.succeeded, state.ended_at,
    )  # fmt: skip
    assert began - 1 <= state.started_at <= time.time() + 1
    assert ([arn], [], {"workload": "lm"}) == (
        executions.running_arns(), other.running_arns(), executions.input_of(arn),
    )  # fmt: skip
    assert (True, False) == (executions.owns(arn), other.owns(arn))
    assert NOT_ENDED == ends.end_of(arn)

    executions.stop(arn, "by hand")
    stopped, end = executions.describe(arn), ends.end_of(arn)
    assert [] == executions.running_arns()
    assert ("ABORTED", False, False) == (stopped.status, stopped.running, stopped.succeeded)
    assert ("ABORTED", arn, '{"workload": "lm"}') == (
        end.status, end.detail["executionArn"], end.detail["input"],
    )  # fmt: skip
    assert end.at == int(stopped.ended_at)
    with pytest.raises(NotFoundError):
        executions.describe(arn.replace("lm-", "no-"))
    client.delete_state_machine(stateMachineArn=machines[1])
    assert [] == other.running_arns()


MACHINE = EXECUTION.replace(":execution:", ":stateMachine:").rpartition(":")[0]


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({"status": "SUCCEEDED", "output": '{"a": 1}'}, ("SUCCEEDED", "", "", {"a": 1})),
        ({"status": "FAILED", "error": "E", "cause": "why"}, ("FAILED", "E", "why", {})),
        # Refused because another execution holds the workload: a failure here.
        ({"status": "SUCCEEDED", "output": '{"refused": {"error": "Locked", "cause": "held"}}'},
         ("FAILED", "Locked", "held", {"refused": {"error": "Locked", "cause": "held"}})),
    ],
)  # fmt: skip
def test_an_execution_says_how_it_ended(aws, described, expected):
    client, moment = boto3.client("stepfunctions"), datetime(2026, 11, 20, tzinfo=UTC)
    answer = {"executionArn": EXECUTION, "stateMachineArn": MACHINE, "startDate": moment,
              "stopDate": moment, **described}  # fmt: skip
    stop = {"executionArn": EXECUTION, "error": "Stopped", "cause": "by hand"}
    with Stubber(client) as stub:
        stub.add_response("describe_execution", answer, {"executionArn": EXECUTION})
        stub.add_response("describe_execution", answer, {"executionArn": EXECUTION})
        stub.add_response("stop_execution", {"stopDate": moment}, stop)
        executions = StepFunctionsExecutions(client, MACHINE)
        state = executions.describe(EXECUTION)
        assert {} == executions.input_of(EXECUTION)  # an input may be left out
        executions.stop(EXECUTION, "by hand")

    assert expected == (state.status, state.error, state.cause, state.output)
    assert (EXECUTION, moment.timestamp(), moment.timestamp()) == (
        state.arn, state.started_at, state.ended_at,
    )  # fmt: skip
    assert ("w-0mabc123", expected[0] == "SUCCEEDED") == (state.name, state.succeeded)


def test_a_retention_is_set_once_and_never_changed(aws):
    logs = boto3.client("logs")
    assert not CloudWatchTrainingLogs(logs, 30).limit_retention()  # no training job has run yet
    logs.create_log_group(logGroupName=f"{LOG_GROUP}/other")
    logs.create_log_group(logGroupName=LOG_GROUP)

    assert not CloudWatchTrainingLogs(logs, None).limit_retention()
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
        self.asked.append((logStreamName, position))
        return {"events": [{"message": "line"}], "nextForwardToken": "next"}


def test_the_lines_of_a_job_are_those_of_its_machines_first_stream():
    """Not of one that another job made, which may write where names begin alike."""
    logs = Logs({
        "j/algo-1-1": 50, "j/algo-1-9": 30, "j/algo-1-5": 40, "j/algo-1-1/profiler": 10,
        "j/algo-1-": 5, "j/algo-1-17x": 6, "k/j/algo-1-8": 7,
    })  # fmt: skip
    watch = JobLogs(logs)

    assert (["line"], "next") == watch.lines("j", None)
    logs.streams = {"j/algo-1-0": 1}
    assert (["line"], "next") == watch.lines("j", "later")
    assert [("j/algo-1-9", {}), ("j/algo-1-9", {"nextToken": "later"})] == logs.asked
    assert ((), "t") == JobLogs(Logs({})).lines("j", "t")


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
    assert FORGOTTEN == forgotten


def test_before_there_is_a_log_it_has_no_lines(aws):
    assert ((), None) == JobLogs(boto3.client("logs")).lines("job", None)
