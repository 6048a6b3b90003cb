"""How jobs ended, by what Step Functions and SageMaker report, in a sentence a person can act on.

Some ends look alike: missing capacity arrives as a failed job, a missing quota as an error of
CreateTrainingJob; both wait. A job that reached its time limit ends as ``Stopped``, as one does
that a person stopped: the first is a failed run, the second is not a result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from compilegate.domain.outside import shorten
from compilegate.domain.wording import sentences

# What Step Functions calls CreateTrainingJob's answer that the account's quota is in use (Step
# Functions developer guide, connect-sagemaker, sample state "SageMaker CreateTrainingJob").
RESOURCE_LIMIT_ERROR = "SageMaker.ResourceLimitExceededException"
# What the cloud could not provide says nothing about the arm that asked for it; more time, or
# another instance type, may put it right.
CAPACITY_MARKERS = (
    "CapacityError",
    "EC2InsufficientCapacity",
    "InternalServerError",
    "ResourceLimitExceeded",
    "ThrottlingException",
)
# Of a request that did not become a job.
WAITS = (*CAPACITY_MARKERS, "Rate exceeded")
# SageMaker's statuses of a training job (API reference, DescribeTrainingJob, TrainingJobStatus).
IN_PROGRESS, STOPPING = "InProgress", "Stopping"
COMPLETED, FAILED, STOPPED = "Completed", "Failed", "Stopped"
ACTIVE = (IN_PROGRESS, STOPPING)
ENDED = (COMPLETED, FAILED, STOPPED)
# A FailureReason begins with the class of the failure and a colon: what a script that crashed has
# printed follows this one, and may name anything.
SCRIPT = "AlgorithmError"
# … and this is what of the request could not be done: data, key, network, permission, image.
REQUEST = "ClientError"
# Of those what the job itself has used up, and what its container has ended with.
_OWN_REQUEST = re.compile(r"instance type with more memory|exit code: \d+\s*$", re.IGNORECASE)
# What SageMaker calls a spot job that reached its MaxWaitTimeInSeconds.
NO_SPOT_CAPACITY = "MaxWaitTimeExceeded"
# … and a job that reached the time limit of this name.
TIME_LIMIT, TIME_LIMIT_NAME = "MaxRuntimeExceeded", "MaxRuntimeInSeconds"
SECONDARY = "SecondaryStatus"
_SECONDARY_WORDS = {
    NO_SPOT_CAPACITY: "no spot capacity came in time (training.max_wait_hours)",
    TIME_LIMIT: f"the job reached its {TIME_LIMIT_NAME} (training.max_runtime_hours)",
}


@dataclass(frozen=True)
class JobFailure:
    """Why a training job did not complete.

    ``infrastructure`` says that it is not the arm's doing, ``no_capacity`` that of this more time
    may put it right, ``timed_out`` that the job reached its time limit.
    """

    status: str
    reason: str
    infrastructure: bool
    billable_seconds: int | None
    no_capacity: bool = False
    timed_out: bool = False


def explain_job(cause: str) -> JobFailure:
    """Read the Cause of a failed ``createTrainingJob.sync``: the job's description as JSON."""
    described = _document(cause)
    if described is None:
        return JobFailure(FAILED, shorten(cause or "no reason given"), True, None)
    status, secondary = str(described.get("TrainingJobStatus", FAILED)), described.get(SECONDARY)
    ended = f"the job was {str(described.get('TrainingJobStatus', 'stopped')).lower()}"
    reason = str(described.get("FailureReason") or _SECONDARY_WORDS.get(str(secondary), ended))
    kind, seconds = reason.partition(":")[0], described.get("BillableTimeInSeconds")
    # By the class that it begins with: a script's own words may name any error.
    lacking = SCRIPT not in kind and any(marker in kind for marker in CAPACITY_MARKERS)
    no_capacity = secondary == NO_SPOT_CAPACITY or lacking
    of_the_request = reason.startswith(REQUEST) and not _OWN_REQUEST.search(reason)
    at_its_limit = secondary == TIME_LIMIT or TIME_LIMIT_NAME in reason
    return JobFailure(
        status=status,
        reason=shorten(reason),
        infrastructure=no_capacity or of_the_request,
        billable_seconds=seconds if isinstance(seconds, int) else None,
        no_capacity=no_capacity,
        timed_out=status == STOPPED and at_its_limit,
    )


def explain(error: str, cause: str) -> str:
    """One sentence on why a trial failed, with what to do about it where that is known."""
    inner = _document(cause) or {}
    keys = ("FailureReason", "errorMessage", "Cause")
    innermost = next((str(inner[key]) for key in keys if inner.get(key)), cause)
    explanations = sentences(Path(__file__).with_suffix(".toml"))["explanations"]
    for marker, explanation in explanations.items():
        if marker in error or marker in innermost:
            return shorten(f"{innermost or error}: {explanation}" if innermost else explanation)
    parts = [part for part in (error, innermost) if part]
    return shorten(": ".join(parts) or "no reason was given")


def _document(cause: str) -> Mapping[str, Any] | None:
    try:
        document = json.loads(cause)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, Mapping) else None


class Ending(StrEnum):
    """The outcome of a job."""

    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    NO_CAPACITY = "no_capacity"
    # Neither started nor waiting: a refused request, a role without permission.
    REFUSED = "refused"


@dataclass(frozen=True)
class JobEnd:
    """``status`` is SageMaker's own, ``reason`` None for a job that completed.

    ``about_arm`` says whether what happened may be the arm's doing.
    """

    ending: Ending
    status: str
    reason: str | None = None
    about_arm: bool = True


def job_end(described: Mapping[str, Any], error: str, cause: str) -> JobEnd:
    """How it ended, from the job's description, else (it is empty) from the task's error."""
    if not described:
        waits = any(marker in f"{error} {cause}" for marker in WAITS)
        ending = Ending.NO_CAPACITY if waits else Ending.REFUSED
        return JobEnd(ending, "NotStarted", explain(error, cause), about_arm=False)
    status = str(described["TrainingJobStatus"])
    if status == COMPLETED:
        return JobEnd(Ending.COMPLETED, status)
    failure = explain_job(json.dumps(dict(described), default=str))
    if failure.no_capacity:
        return JobEnd(Ending.NO_CAPACITY, status, explain("", failure.reason), about_arm=False)
    if status == FAILED or described.get(SECONDARY) == TIME_LIMIT:
        about_arm = status != FAILED or not failure.infrastructure
        return JobEnd(Ending.FAILED, status, failure.reason, about_arm=about_arm)
    if error == "States.Timeout":
        text = "the job had not ended after its time limit and six hours of queueing and transfer"
        return JobEnd(Ending.FAILED, status, text, about_arm=False)
    return JobEnd(Ending.STOPPED, status, failure.reason, about_arm=False)
