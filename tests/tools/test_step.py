"""A step runs in this process with what an execution sent to its function."""

import json

import pytest

from tools.step import function_name, last_event


def scheduled(step: str, payload: dict[str, object]) -> dict[str, object]:
    arn = f"arn:aws:lambda:us-east-1:000000000000:function:{function_name(step, 'local')}:1"
    parameters = json.dumps({"FunctionName": arn, "Payload": payload})
    return {"type": "TaskScheduled", "taskScheduledEventDetails": {"parameters": parameters}}


def test_a_step_gets_what_its_function_was_sent_last() -> None:
    other = {"type": "ExecutionStarted"}
    history = [
        other, scheduled("judge_arms", {"round": 1}), scheduled("plan_trial", {}),
        scheduled("judge_arms", {"round": 2}), other,
    ]  # fmt: skip

    assert last_event(history, function_name("judge_arms", "local")) == {"round": 2}
    with pytest.raises(LookupError, match="compilegate-local-apply-flag"):
        last_event(history, function_name("apply_flag", "local"))
