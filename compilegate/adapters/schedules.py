"""Production's schedules in EventBridge Scheduler, one per workload in the stage's group.

Delivery is at least once; the time it was meant for comes with it and names the run, so that a
second delivery finds the run begun.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code

SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
# Runs take hours and many teams write 03:00: spread over a quarter of an hour, thousands of
# executions and training jobs do not ask for the same second's share of the account's rates.
WINDOW_MINUTES = 15
# A start that is refused is tried again as often as the service allows, for so long. A run that
# is hours late is still of use; much later it meets the next one.
MOST_ATTEMPTS = 185
OLDEST_SECONDS = 6 * 3600
# A first time that is nearer may have passed when the call arrives.
SOON_SECONDS = 30
ENABLED, DISABLED = "ENABLED", "DISABLED"
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
        """Create the workload's schedule or replace it; the expression is read in that zone."""
        request = self._request(workload, expression, timezone)
        try:
            self._scheduler.create_schedule(**request)
        except ClientError as error:
            if error_code(error) != "ConflictException":
                raise
            self._scheduler.update_schedule(**request)

    def remove(self, workload: str) -> None:
        """Delete the workload's schedule, if there is one."""
        try:
            self._scheduler.delete_schedule(Name=workload, GroupName=self._group)
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise

    def enabled(self) -> Sequence[str]:
        """Workloads whose schedules start runs."""
        pages = self._scheduler.get_paginator("list_schedules").paginate(
            GroupName=self._group, State=ENABLED
        )
        return [item["Name"] for page in pages for item in page["Schedules"]]

    def disable(self, workload: str) -> bool:
        """Let the workload's schedule start nothing; False where there is none."""
        return self._set_state(workload, DISABLED)

    def enable(self, workload: str) -> bool:
        """Let the workload's schedule start runs again; False where there is none."""
        return self._set_state(workload, ENABLED)

    def _set_state(self, workload: str, state: str) -> bool:
        """As it is, but for its state, and for a rate's first time: Scheduler refuses old ones."""
        try:
            schedule = self._scheduler.get_schedule(Name=workload, GroupName=self._group)
            request = self._request(
                workload, schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]
            )
            self._scheduler.update_schedule(**{**request, "State": state})
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
            return False
        return True

    def _request(self, workload: str, expression: str, timezone: str) -> dict[str, Any]:
        """Everything: what an update leaves out gets its default."""
        return {
            "Name": workload,
            "GroupName": self._group,
            "Description": f"Compilegate: production runs of {workload}",
            "ScheduleExpression": expression,
            "ScheduleExpressionTimezone": timezone,
            "FlexibleTimeWindow": _window(expression),
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
    if rate is None:
        return {}
    interval = int(rate[1]) * _SECONDS[rate[2]]
    turn = int(hashlib.sha256(workload.encode()).hexdigest(), 16) % interval
    soonest = int(now) + SOON_SECONDS
    start = soonest + (turn - soonest) % interval
    return {"StartDate": datetime.fromtimestamp(start, tz=UTC)}


def _window(expression: str) -> dict[str, Any]:
    """None for what comes every few minutes: its runs would swap places."""
    rate = _RATE.fullmatch(expression)
    if rate and rate[2] == "minute":
        return {"Mode": "OFF"}
    return {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": WINDOW_MINUTES}
