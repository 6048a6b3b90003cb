"""Production's schedules in EventBridge Scheduler, one per workload in the stage's group.

Delivery is at least once; the time it was meant for comes with it and names the run, so that a
second delivery finds the run begun.
"""

from __future__ import annotations

import json
import re
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code

SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
# Runs take hours and many teams write 03:00: spread over a quarter of an hour, thousands of
# executions and training jobs do not ask for the same second's share of the account's rates.
WINDOW_MINUTES = 15
# A start that is refused is tried again as often as the service allows, for so long. A run that
# is hours late is still that night's model; much later it meets the next one.
MOST_ATTEMPTS = 185
OLDEST_SECONDS = 6 * 3600
_EVERY_FEW_MINUTES = re.compile(r"rate\(\d+ minutes?\)")


class EventBridgeSchedules:
    """Schedules of one group that start one state machine as one role."""

    def __init__(self, scheduler: Any, *, group: str, machine: str, role: str) -> None:
        self._scheduler = scheduler
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

    def _request(self, workload: str, expression: str, timezone: str) -> dict[str, Any]:
        """Everything: what an update leaves out gets its default."""
        return {
            "Name": workload,
            "GroupName": self._group,
            "Description": f"Compilegate: production runs of {workload}",
            "ScheduleExpression": expression,
            "ScheduleExpressionTimezone": timezone,
            "FlexibleTimeWindow": _window(expression),
            "State": "ENABLED",
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


def _window(expression: str) -> dict[str, Any]:
    """None for what comes every few minutes: its runs would swap places."""
    if _EVERY_FEW_MINUTES.fullmatch(expression):
        return {"Mode": "OFF"}
    return {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": WINDOW_MINUTES}
