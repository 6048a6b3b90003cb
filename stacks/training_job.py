"""The two states that start a training job and wait for it, the same in every machine.

They read two variables: ``run``, ``{run, job_base, …}``, and ``request``, the complete request.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain import naming
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.planning.history import THROTTLE_ATTEMPTS
from compilegate.domain.planning.rounds import QUEUE_AND_TRANSFER_SECONDS
from stacks.states import State, catch, jsonata, retry, retry_for_quota

# SageMaker throttles CreateTrainingJob to a few calls a second and reports that, like most
# refusals, as AmazonSageMakerException: a lasting refusal is told after about a minute.
THROTTLED = ("SageMaker.AmazonSageMakerException", "SageMaker.ThrottlingException")

# SageMaker never forgets a job's name, so a retried one gets a new one. One character counts the
# retries, so that names keep their length and sort in the order of the retries.
RETRY_DIGIT = f"$substring('{naming.RETRY_DIGITS}', $states.context.State.RetryCount, 1)"
JOB_NAME = f"$run.job_base & '-r' & {RETRY_DIGIT}"
# A spot job's waiting includes its training; on demand there is none.
LIMITS = "$request.StoppingCondition"
LONGEST = f"$max([{LIMITS}.MaxRuntimeInSeconds, {LIMITS}.MaxWaitTimeInSeconds])"


def load_request(bucket: str, *, then: str, catches: Sequence[State] = ()) -> State:
    """Take the request that the input's ``request_key`` names; the input becomes ``run``."""
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
