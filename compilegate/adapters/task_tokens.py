"""Answers to state machines that wait with a task token."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
        try:
            self._client.send_task_success(taskToken=token, output=json.dumps(output))
        except ClientError as error:
            if error_code(error) not in NOBODY_WAITS:
                raise
            return False
        return True
