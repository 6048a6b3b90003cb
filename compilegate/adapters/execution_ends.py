"""Whether executions have ended, and how, whichever state machine they are of."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.clients import error_code
from compilegate.domain.production.orphans import ExecutionEnd

DETAIL = ("executionArn", "status", "input", "error", "cause")


class StepFunctionsEnds:
    """ExecutionEnds in Step Functions."""

    def __init__(self, stepfunctions: Any) -> None:
        self._client = stepfunctions

    def end_of(self, execution: str) -> ExecutionEnd | None:
        """How an execution ended, None while it runs; forgotten ones have no status."""
        try:
            found = self._client.describe_execution(executionArn=execution)
        except ClientError as error:
            if error_code(error) == "ExecutionDoesNotExist":
                return ExecutionEnd()
            raise
        ended = found.get("stopDate")
        if ended is None:
            return None
        detail = {name: found[name] for name in DETAIL if name in found}
        return ExecutionEnd(str(found["status"]), int(ended.timestamp()), detail)
