"""Executions of the state machines, and the schedules that start them."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from compilegate.adapters.stores import listed, unless
from compilegate.domain.errors import NotFoundError
from compilegate.domain.naming import REFUSED
from compilegate.domain.optional import map_optional
from compilegate.domain.production.orphans import FAILED, FORGOTTEN, NOT_ENDED, ExecutionEnd

# Executions on Step Functions: their start, state and end, and answers to waiting tokens.

RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"
# Error codes of Step Functions. A token's state has ended where it was answered, timed out or
# stopped.
GONE, NO_MACHINE = ("ExecutionDoesNotExist",), ("StateMachineDoesNotExist",)
NO_LONGER_WAITING = ("TaskTimedOut", "TaskDoesNotExist")


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
        self._client, self._state_machine = stepfunctions, state_machine

    def start(self, name: str, payload: Mapping[str, Any]) -> str:
        """StartExecution; returns the ARN."""
        started = self._client.start_execution(
            stateMachineArn=self._state_machine, name=name, input=json.dumps(payload)
        )
        return str(started["executionArn"])

    def describe(self, arn: str) -> ExecutionState:
        """DescribeExecution; raises NotFoundError."""
        described = unless(GONE, self._client.describe_execution, executionArn=arn)
        if not described:
            raise NotFoundError(f"there is no execution {arn}")
        return _state(described)

    def running_arns(self) -> Sequence[str]:
        """ARNs of every execution that has not ended; none of a machine that is gone."""
        return [state.arn for state in unless(NO_MACHINE, self.running) or ()]

    def input_of(self, arn: str) -> Mapping[str, Any]:
        """What an execution was started with."""
        described = self._client.describe_execution(executionArn=arn)
        execution_input: Mapping[str, Any] = json.loads(described.get("input") or "{}")
        return execution_input

    def owns(self, arn: str) -> bool:
        """Whether an execution is this machine's."""
        return arn.startswith(f"{self._state_machine.replace(':stateMachine:', ':execution:')}:")

    def stop(self, arn: str, cause: str) -> None:
        """StopExecution; one that has already ended is left alone."""
        self._client.stop_execution(executionArn=arn, error="Stopped", cause=cause)

    def running(self) -> Sequence[ExecutionState]:
        """Every execution that has not ended, newest first."""
        asked = {"stateMachineArn": self._state_machine, "statusFilter": RUNNING}
        items = listed(self._client, "list_executions", "executions", **asked)
        return [_state(item) for item in items]


def _state(described: Mapping[str, Any]) -> ExecutionState:
    ended = described.get("stopDate")
    output = json.loads(described.get("output") or "{}")
    refused = output.get(REFUSED)
    failure = refused or described
    return ExecutionState(
        arn=str(described["executionArn"]),
        status=FAILED if refused else str(described["status"]),
        started_at=described["startDate"].timestamp(),
        ended_at=map_optional(ended, datetime.timestamp),
        error=str(failure.get("error") or ""),
        cause=str(failure.get("cause") or ""),
        output=output,
    )


DETAIL = ("executionArn", "status", "input", "error", "cause")


class StepFunctions:
    """ExecutionEnds and Tokens in Step Functions, of any state machine."""

    def __init__(self, stepfunctions: Any) -> None:
        self._client = stepfunctions

    def end_of(self, execution: str) -> ExecutionEnd:
        described = unless(GONE, self._client.describe_execution, executionArn=execution)
        if not described or not described.get("stopDate"):
            return NOT_ENDED if described else FORGOTTEN
        detail = {name: described[name] for name in DETAIL if name in described}
        ended_at = int(described["stopDate"].timestamp())
        return ExecutionEnd(str(described["status"]), ended_at, detail)

    def send_success(self, token: str, output: Mapping[str, Any]) -> bool:
        answer = {"taskToken": token, "output": json.dumps(output)}
        return bool(unless(NO_LONGER_WAITING, self._client.send_task_success, **answer))


# Production's schedules in EventBridge Scheduler, one per workload in the stage's group.
#
# Delivery is at least once; the time it was meant for comes with it and names the run, so that a
# second delivery finds the run begun.

SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
# Runs take hours and many teams write 03:00: spread over a quarter of an hour, thousands of
# executions and training jobs do not ask for the same second's share of the account's rates.
WINDOW = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}
# A start that is refused is tried again as often as the service allows, for so long. A run that
# is hours late is still of use; much later it meets the next one.
MOST_ATTEMPTS = 185
OLDEST_SECONDS = 6 * 3600
# A first time that is nearer may have passed when the call arrives.
SOON_SECONDS = 30
ENABLED = "ENABLED"
EXISTS, MISSING = ("ConflictException",), ("ResourceNotFoundException",)
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_SECONDS = {"minute": 60, "hour": 3600, "day": 86400}


class EventBridgeSchedules:
    """Schedules of one group that start one state machine as one role."""

    def __init__(
        self,
        scheduler: Any,
        *,
        group: str,
        machine: str,
        role: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._scheduler, self._now = scheduler, now
        self._group, self._machine, self._role = group, machine, role
        self.target = f"{machine} as {role}"

    def put(self, workload: str, expression: str, timezone: str = "UTC") -> None:
        request = self._request(workload, expression, timezone)
        if not unless(EXISTS, self._scheduler.create_schedule, **request):
            self._scheduler.update_schedule(**request)

    def remove(self, workload: str) -> None:
        own = {"Name": workload, "GroupName": self._group}
        unless(MISSING, self._scheduler.delete_schedule, **own)

    def enabled(self) -> Sequence[str]:
        asked = {"GroupName": self._group, "State": ENABLED}
        items = listed(self._scheduler, "list_schedules", "Schedules", **asked)
        return [item["Name"] for item in items]

    def switch(self, workload: str, *, on: bool) -> bool:
        """As it is, but for its state, and for a rate's first time: Scheduler refuses old ones."""
        own = {"Name": workload, "GroupName": self._group}
        schedule = unless(MISSING, self._scheduler.get_schedule, **own)
        if not schedule:
            return False
        expression, zone = schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]
        state = ENABLED if on else "DISABLED"
        request = {**self._request(workload, expression, zone), "State": state}
        return bool(unless(MISSING, self._scheduler.update_schedule, **request))

    def _request(self, workload: str, expression: str, timezone: str) -> dict[str, Any]:
        """Everything: what an update leaves out gets its default."""
        rate = _RATE.fullmatch(expression)
        often = rate and rate[2] == "minute"  # its runs would swap places in a window
        return {
            "Name": workload,
            "GroupName": self._group,
            "Description": f"Compilegate: production runs of {workload}",
            "ScheduleExpression": expression,
            "ScheduleExpressionTimezone": timezone,
            "FlexibleTimeWindow": {"Mode": "OFF"} if often else WINDOW,
            **first_time(workload, expression, self._now()),
            "State": ENABLED,
            "Target": {
                "Arn": self._machine,
                "RoleArn": self._role,
                "Input": json.dumps({"workload": workload, "scheduled": SCHEDULED_TIME}),
                "RetryPolicy": {
                    "MaximumRetryAttempts": MOST_ATTEMPTS,
                    "MaximumEventAgeInSeconds": OLDEST_SECONDS,
                },
            },
        }


def first_time(workload: str, expression: str, now: float) -> dict[str, datetime]:
    """When a rate begins; nothing for a cron, which says so itself.

    Without it EventBridge Scheduler starts a rate's first run at once, and so at every change
    (https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html). Every workload
    gets a turn of its own in the interval, always the same, so that registering neither starts a
    run nor puts one off, and thousands of workloads do not share a moment.
    """
    rate = _RATE.fullmatch(expression)
    if not rate:
        return {}
    interval = int(rate[1]) * _SECONDS[rate[2]]
    turn = int(hashlib.sha256(workload.encode()).hexdigest(), 16) % interval
    soonest = int(now) + SOON_SECONDS
    start = soonest + (turn - soonest) % interval
    return {"StartDate": datetime.fromtimestamp(start, tz=UTC)}
