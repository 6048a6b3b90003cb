"""Builders for the states that the machines are made of; expressions are JSONata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain import naming
from compilegate.domain.claims import SUBJECT_MAX
from compilegate.domain.escaping import ADDRESSES, BREAK, CHAT
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.planning import rounds
from compilegate.domain.planning.rounds import QUEUE_AND_TRANSFER_SECONDS, THROTTLE_ATTEMPTS

State = dict[str, Any]
# What the ARN of every integration begins with, in the partition aws; stacks/machine.py puts
# another partition's in.
INTEGRATIONS = "arn:aws:states:::"

# A function's own limit is shorter (stacks/functions.py); this one catches an invocation that is
# never answered.
LAMBDA_SECONDS = 600
# Transient faults of the service. A function's errors are not retried: boto3 already retries its
# calls.
LAMBDA_FAULTS = (
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
)


# SageMaker throttles CreateTrainingJob to a few calls a second and reports that, like most
# refusals, as AmazonSageMakerException: a lasting refusal surfaces after about a minute.
THROTTLED = ("SageMaker.AmazonSageMakerException", "SageMaker.ThrottlingException")

# SageMaker accepts a job's name once, so a retry needs another one. One character counts the
# retries, so that names keep their length and sort in the order of the retries.
RETRY_DIGIT = f"$substring('{naming.RETRY_DIGITS}', $states.context.State.RetryCount, 1)"
JOB_NAME = f"$run.job_base & '-r' & {RETRY_DIGIT}"
# A spot job's waiting includes its training; on demand there is none.
LIMITS = "$request.StoppingCondition"
LONGEST = f"$max([{LIMITS}.MaxRuntimeInSeconds, {LIMITS}.MaxWaitTimeInSeconds])"

_INPUT = "$states.input"


def _escaped(text: str, replaced: Sequence[tuple[str, str]]) -> str:
    """An error's own words for people, as compilegate/domain/escaping.py has them.

    Broken by a space: implementations of JSONata differ in how $string writes a zero-width one.
    """
    for old, new in replaced:
        text = f"$replace({text}, {json.dumps(old)}, {json.dumps(new.replace(BREAK, ' '))})"
    return text


# The message of a step that failed itself: in the form of compilegate/domain/claims.py.
_PLAIN = (
    "$string({"
    f"'default': $string({{'schema': 1, 'kind': 'failed', 'subject': {_INPUT}.subject,"
    f" 'text': {_INPUT}.message}}),"
    f" 'email': {_escaped(f'{_INPUT}.message', ADDRESSES)},"
    " 'https': $string({'version': '1.0', 'source': 'custom', 'content': {"
    f"'textType': 'client-markdown', 'title': {_escaped(f'{_INPUT}.subject', CHAT)},"
    f" 'description': {_escaped(f'{_INPUT}.message', CHAT)}"
    "}})})"
)
_HAS_NOTIFICATION = f"$exists({_INPUT}.notification)"
# An owner's subscription takes only messages that name the owner.
_OWNER = f"{_INPUT}.owner"
_PLAIN_ATTRIBUTES = (
    f"$boolean({_OWNER}) ? {{'owner': {{'DataType': 'String', 'StringValue': {_OWNER}}}}} : {{}}"
)


def jsonata(expression: str) -> str:
    """The expression as the state language marks it."""
    return f"{{% {expression} %}}"


# A null of JSON's own would be dropped in synthesis.
NULL = jsonata("null")
EXECUTION = {"execution": jsonata("$states.context.Execution.Id")}
# What a Catch sees of the error.
FAILURE = {
    "error": jsonata("$states.errorOutput.Error"),
    # A timeout has a name but no cause.
    "cause": jsonata("$exists($states.errorOutput.Cause) ? $states.errorOutput.Cause : ''"),
}

# Characters of an error's own words that people are shown.
WORDS_SHOWN = 600
# In a function's error, a job's description and an error of a state within another.
# JSONata finds a regular expression's end by counting brackets that no backslash precedes.
_MESSAGE = r'/"(errorMessage|FailureReason|Cause)": ?"([^\\"{}]*)/'


def words(cause: str) -> str:
    """The sentence in a cause, which may be JSON; empty where it holds none.

    Evaluating it never fails on a text, as $parse would: it is for states that end a machine.
    """
    text = (
        f"$contains({cause}, {_MESSAGE}) ? $match({cause}, {_MESSAGE}, 1).groups[1]"
        f" : $substringBefore({cause}, '{{')"
    )
    return f"$substring({text}, 0, {WORDS_SHOWN})"


# What a state gets that a Catch leads to.
CAUGHT = {name: jsonata(f"$states.input.{name}") for name in FAILURE}


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
    """Retry for hours, without jitter, so that its duration is fixed (planning/rounds)."""
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
    """Record any failure in ``variable`` and continue: what is done stays."""
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
        "Retry": [retry(LAMBDA_FAULTS, seconds=2, attempts=6)],
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


def load_request(bucket: str, *, then: str, catches: Sequence[State] = ()) -> State:
    """Load the request that the input's ``request_key`` names; the input becomes ``run``."""
    state: State = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:s3:getObject",
        "Arguments": {"Bucket": bucket, "Key": jsonata("$states.input.request_key")},
        "Assign": {
            "run": jsonata("$states.input"),
            "request": jsonata("$parse($states.result.Body)"),
        },
        "Output": {},
        "TimeoutSeconds": 60,
        "Retry": [retry(["States.TaskFailed"], seconds=1, attempts=3)],
        "Next": then,
    }
    return state | ({"Catch": list(catches)} if catches else {})


def train(*, then: str, catches: Sequence[State], waits_for_quota: bool = False) -> State:
    """Start the job and wait for it; its name becomes ``job``.

    A failed job is an error whose cause is the job's description: see ``job_caught``. With
    ``waits_for_quota`` a request for which the quota leaves no room is made again for hours.
    """
    quota = [retry_for_quota(RESOURCE_LIMIT_ERROR)] if waits_for_quota else []
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
        "Arguments": jsonata(f"$merge([$request, {{'TrainingJobName': {JOB_NAME}}}])"),
        "TimeoutSeconds": jsonata(f"{LONGEST} + {QUEUE_AND_TRANSFER_SECONDS}"),
        "Assign": {"job": jsonata("$states.result.TrainingJobName")},
        "Output": jsonata("$states.result"),
        "Retry": [*quota, retry(THROTTLED, seconds=3, attempts=THROTTLE_ATTEMPTS)],
        "Catch": list(catches),
        "Next": then,
    }


def job_caught(error: str, target: str) -> State:
    """Go to ``target`` with the error's name and cause, the job's name kept."""
    return catch([error], target) | {"Assign": {"job": jsonata(JOB_NAME)}}


def notify(topic_arn: str, *, then: str, catches: Sequence[State]) -> State:
    """Publish the input, what a function answered: ``subject``, ``message``, ``notification``.

    Without the last, where the function itself failed, the two texts, and ``owner`` if present,
    are put into the same form here.
    """
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Arguments": {
            "TopicArn": topic_arn,
            "Subject": jsonata(f"$substring({_INPUT}.subject, 0, {SUBJECT_MAX})"),
            "MessageStructure": "json",
            "Message": jsonata(f"{_HAS_NOTIFICATION} ? {_INPUT}.notification.message : {_PLAIN}"),
            "MessageAttributes": jsonata(
                f"{_HAS_NOTIFICATION} ? {_INPUT}.notification.attributes : ({_PLAIN_ATTRIBUTES})"
            ),
        },
        "Output": {},
        "TimeoutSeconds": 60,
        "Retry": [retry(["States.TaskFailed"], seconds=1, attempts=3)],
        "Catch": list(catches),
        "Next": then,
    }
