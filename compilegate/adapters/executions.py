"""Executions on Step Functions: their start, state and end, and answers to waiting tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code
from compilegate.domain.errors import NotFoundError
from compilegate.domain.naming import REFUSED
from compilegate.domain.production.orphans import FAILED, ExecutionEnd

RUNNING = "RUNNING"
SUCCEEDED = "SUCCEEDED"


@dataclass(frozen=True)
class ExecutionState:
    """One execution; times in epoch seconds, ``error`` and ``cause`` when it ended badly.

    ``output`` is what it ended with; only ``describe`` knows it. An execution that was refused
    because another one holds the workload counts as failed here, although Step Functions counts
    it as succeeded.
    """

    arn: str
    status: str
    started_at: float
    ended_at: float | None = None
    error: str = ""
    cause: str = ""
    output: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The execution's name, ``{workload}-{trial}``."""
        return self.arn.rpartition(":")[2]

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.status == RUNNING

    @property
    def succeeded(self) -> bool:
        """Whether it ended well."""
        return self.status == SUCCEEDED


class StepFunctionsExecutions:
    """Executions of one state machine."""

    def __init__(self, stepfunctions: Any, state_machine: str) -> None:
        self._client = stepfunctions
        self._state_machine = state_machine

    def start(self, name: str, payload: Mapping[str, Any]) -> str:
        """StartExecution; returns the ARN."""
        started = self._client.start_execution(
            stateMachineArn=self._state_machine, name=name, input=json.dumps(payload)
        )
        return str(started["executionArn"])

    def describe(self, arn: str) -> ExecutionState:
        """DescribeExecution; raises NotFoundError."""
        try:
            described = self._client.describe_execution(executionArn=arn)
        except ClientError as error:
            if error_code(error) == "ExecutionDoesNotExist":
                raise NotFoundError(f"there is no execution {arn}") from error
            raise
        return _state(described)

    def running_arns(self) -> Sequence[str]:
        """ARNs of every execution that has not ended; none of a machine that is gone."""
        try:
            return [state.arn for state in self.running()]
        except ClientError as error:
            if error_code(error) != "StateMachineDoesNotExist":
                raise
            return []

    def input_of(self, arn: str) -> Mapping[str, Any]:
        """What an execution was started with."""
        described = self._client.describe_execution(executionArn=arn)
        execution_input: Mapping[str, Any] = json.loads(described.get("input") or "{}")
        return execution_input

    def owns(self, arn: str) -> bool:
        """Whether an execution is this machine's."""
        return arn.startswith(f"{self._state_machine.replace(':stateMachine:', ':execution:', 1)}:")

    def stop(self, arn: str, cause: str) -> None:
        """StopExecution; one that has already ended is left alone."""
        self._client.stop_execution(executionArn=arn, error="Stopped", cause=cause)

    def running(self) -> Sequence[ExecutionState]:
        """Every execution that has not ended, newest first."""
        pages = self._client.get_paginator("list_executions").paginate(
            stateMachineArn=self._state_machine, statusFilter=RUNNING
        )
        return [_state(item) for page in pages for item in page["executions"]]


def _state(described: Mapping[str, Any]) -> ExecutionState:
    ended = described.get("stopDate")
    output = json.loads(described.get("output") or "{}")
    refused = output.get(REFUSED)
    failure = refused or described
    return ExecutionState(
        arn=str(described["executionArn"]),
        status=FAILED if refused else str(described["status"]),
        started_at=described["startDate"].timestamp(),
        ended_at=None if ended is None else ended.timestamp(),
        error=str(failure.get("error") or ""),
        cause=str(failure.get("cause") or ""),
        output=output,
    )


DETAIL = ("executionArn", "status", "input", "error", "cause")


class StepFunctionsEnds:
    """ExecutionEnds in Step Functions."""

    def __init__(self, stepfunctions: Any) -> None:
        self._client = stepfunctions

    def end_of(self, execution: str) -> ExecutionEnd | None:
        """How an execution ended, None while it runs; forgotten ones have no status."""
        try:
            described = self._client.describe_execution(executionArn=execution)
        except ClientError as error:
            if error_code(error) == "ExecutionDoesNotExist":
                return ExecutionEnd()
            raise
        ended = described.get("stopDate")
        if ended is None:
            return None
        detail = {name: described[name] for name in DETAIL if name in described}
        return ExecutionEnd(str(described["status"]), int(ended.timestamp()), detail)


# What Step Functions says of a token whose state has ended: answered, timed out or stopped.
NO_LONGER_WAITING = ("TaskTimedOut", "TaskDoesNotExist")


class StepFunctionsTokens:
    """Tokens on Step Functions."""

    def __init__(self, stepfunctions: Any) -> None:
        self._client = stepfunctions

    def send_success(self, token: str, output: Mapping[str, Any]) -> bool:
        """Let the waiting state continue; returns whether a state still waited for it."""
        try:
            self._client.send_task_success(taskToken=token, output=json.dumps(output))
        except ClientError as error:
            if error_code(error) not in NO_LONGER_WAITING:
                raise
            return False
        return True
