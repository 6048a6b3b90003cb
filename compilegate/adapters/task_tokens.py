"""Answers to state machines that wait with a task token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code

# What Step Functions says of a token whose state has ended: answered, timed out or stopped.
NOBODY_WAITS = ("TaskTimedOut", "TaskDoesNotExist")


class StepFunctionsTokens:
    """Tokens on Step Functions."""

    def __init__(self, stepfunctions: Any) -> None:
        self._client = stepfunctions

    def send_success(self, token: str, output: Mapping[str, Any]) -> bool:
        """Let the waiting state go on; returns whether anybody still waited for it."""
        return self._waited(
            lambda: self._client.send_task_success(taskToken=token, output=json.dumps(output))
        )

    def send_failure(self, token: str, error: str, cause: str) -> bool:
        """Fail the waiting state; returns whether anybody still waited for it."""
        return self._waited(
            lambda: self._client.send_task_failure(taskToken=token, error=error, cause=cause)
        )

    @staticmethod
    def _waited(send: Callable[[], Any]) -> bool:
        try:
            send()
        except ClientError as error:
            if error_code(error) not in NOBODY_WAITS:
                raise
            return False
        return True
