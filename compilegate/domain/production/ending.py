"""How a production job ended, and what that means for the run: three ways that look alike.

Missing capacity arrives as a failed job, a missing quota as an error of CreateTrainingJob; both
wait. A job that reached its time limit ends as ``Stopped``, as one does that a person stopped: the
first is a failed run, the second says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from compilegate.domain.failures import CAPACITY_MARKERS, TIME_LIMIT, explain, explain_job

# Of a request that did not become a job.
WAITS = (*CAPACITY_MARKERS, "Rate exceeded")
# SageMaker's statuses of a job that has ended.
ENDED = ("Completed", "Failed", "Stopped")


class Ending(StrEnum):
    """What became of a job."""

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


def job_end(described: Mapping[str, Any] | None, error: str, cause: str) -> JobEnd:
    """How it ended, from the job's description where there is one, else from the task's error."""
    if described is None:
        waits = any(marker in f"{error} {cause}" for marker in WAITS)
        ending = Ending.NO_CAPACITY if waits else Ending.REFUSED
        return JobEnd(ending, "NotStarted", explain(error, cause), about_arm=False)
    status = str(described["TrainingJobStatus"])
    if status == "Completed":
        return JobEnd(Ending.COMPLETED, status)
    failure = explain_job(json.dumps(dict(described), default=str))
    secondary = described.get("SecondaryStatus")
    if failure.no_capacity:
        return JobEnd(Ending.NO_CAPACITY, status, explain("", failure.reason), about_arm=False)
    if status == "Failed":
        return JobEnd(Ending.FAILED, status, failure.reason, about_arm=not failure.infrastructure)
    return _stopped(status, secondary == TIME_LIMIT, error == "States.Timeout", failure.reason)


def _stopped(status: str, timed_out: bool, overdue: bool, reason: str) -> JobEnd:
    if timed_out:
        return JobEnd(Ending.FAILED, status, reason)
    if overdue:
        text = "the job had not ended after its time limit and six hours of queueing and transfer"
        return JobEnd(Ending.FAILED, status, text, about_arm=False)
    return JobEnd(Ending.STOPPED, status, reason, about_arm=False)
