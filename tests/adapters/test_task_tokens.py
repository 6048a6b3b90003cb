"""Answers to waiting state machines: given once, harmless when nobody waits any more."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from compilegate.adapters.executions import StepFunctionsTokens


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
        return {}


def test_an_answer_reaches_whoever_waits() -> None:
    client = FakeStepFunctions()
    tokens = StepFunctionsTokens(client)

    assert tokens.send_success("t1", {"approved": True})
    assert [{"taskToken": "t1", "output": '{"approved": true}'}] == client.sent


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist"])
def test_an_answer_that_nobody_waits_for_is_told(code: str) -> None:
    tokens = StepFunctionsTokens(FakeStepFunctions(code))

    assert not tokens.send_success("t", {})


def test_any_other_refusal_is_an_error() -> None:
    with pytest.raises(ClientError):
        StepFunctionsTokens(FakeStepFunctions("AccessDeniedException")).send_success("t", {})
