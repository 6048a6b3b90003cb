"""Builders for the states that the machines are made of; expressions are JSONata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain.planning import rounds

State = dict[str, Any]

# A function's own limit is shorter (stacks/functions.py); this one catches an invocation that is
# never answered.
LAMBDA_SECONDS = 600
# AWS's own hiccups. A function's errors are not retried: what it calls, boto3 has retried already.
LAMBDA_HICCUPS = (
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
)


def jsonata(expression: str) -> str:
    """The expression as the state language marks it."""
    return f"{{% {expression} %}}"


# A null of JSON's own would be dropped in synthesis.
NULL = jsonata("null")
EXECUTION = {"execution": jsonata("$states.context.Execution.Id")}
# What a Catch knows of the error.
FAILURE = {
    "error": jsonata("$states.errorOutput.Error"),
    # A timeout has a name but no cause.
    "cause": jsonata("$exists($states.errorOutput.Cause) ? $states.errorOutput.Cause : ''"),
}


def retry(errors: Sequence[str], *, seconds: int, attempts: int) -> State:
    """Exponential back-off with full jitter, so that parallel runs do not return together."""
    return {
        "ErrorEquals": list(errors),
        "IntervalSeconds": seconds,
        "BackoffRate": 2,
        "MaxAttempts": attempts,
        "MaxDelaySeconds": 60,
        "JitterStrategy": "FULL",
    }


def retry_for_quota(error: str) -> State:
    """Ask again for hours, without jitter, so that the time it takes is known (planning/rounds)."""
    return {
        "ErrorEquals": [error],
        "IntervalSeconds": rounds.QUOTA_FIRST_SECONDS,
        "BackoffRate": rounds.QUOTA_BACKOFF,
        "MaxAttempts": rounds.QUOTA_ATTEMPTS,
        "MaxDelaySeconds": rounds.QUOTA_LONGEST_SECONDS,
    }


def catch(errors: Sequence[str], target: str) -> State:
    """Go to ``target`` with the error's name and cause as its input."""
    return {"ErrorEquals": list(errors), "Next": target, "Output": dict(FAILURE)}


def go_on(target: str, variable: str, output: Mapping[str, str] | None = None) -> State:
    """Write any failure down in ``variable`` and go on: what is done already stands."""
    return {
        "ErrorEquals": ["States.ALL"],
        "Next": target,
        "Assign": {variable: dict(FAILURE)},
        "Output": dict(output or {}),
    }


def call(
    function_arn: str,
    payload: Mapping[str, Any],
    *,
    then: str | None,
    assign: Mapping[str, Any] | None = None,
    catches: Sequence[State] = (),
) -> State:
    """Invoke one function; its answer is the state's output, ``then`` None ends the branch."""
    state: State = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": function_arn, "Payload": dict(payload)},
        "Output": jsonata("$states.result.Payload"),
        "TimeoutSeconds": LAMBDA_SECONDS,
        "Retry": [retry(LAMBDA_HICCUPS, seconds=2, attempts=6)],
    }
    if assign:
        state["Assign"] = dict(assign)
    if catches:
        state["Catch"] = list(catches)
    return state | ({"Next": then} if then else {"End": True})


def answer(field: str) -> str:
    """One field of the function's answer."""
    return jsonata(f"$states.result.Payload.{field}")


def choice(branches: Mapping[str, str], otherwise: str) -> State:
    """Go where the first condition that holds leads, ``otherwise`` where none does."""
    return {
        "Type": "Choice",
        "Choices": [
            {"Condition": jsonata(condition), "Next": target}
            for condition, target in branches.items()
        ],
        "Default": otherwise,
    }
