"""How a job ended: completed, a result of its arm all the same, or no result at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain.errors import NotFoundError
from compilegate.domain.failures import explain_job
from compilegate.ports import Services

COMPLETED = "Completed"
# What the state machine says where settle_run itself failed.
UNKNOWN = "Unknown"
TIMED_OUT = "MaxRuntimeInSeconds"
ENDED = (COMPLETED, "Failed", "Stopped")

Outcome = Mapping[str, Any]


def failed_outcome(run: str, job: str, cause: str) -> dict[str, Any]:
    """The outcome of a job that did not complete, from its description as JSON."""
    failure = explain_job(cause)
    return {
        "run": run,
        "job": job,
        "status": failure.status,
        "reason": failure.reason,
        "infrastructure": failure.infrastructure,
    }


def look_up(run: str, job: str, services: Services) -> dict[str, Any]:
    """The outcome as SageMaker tells it; a job that it never saw could not be run."""
    try:
        described = services.jobs.describe(job)
    except NotFoundError:
        return failed_outcome(run, job, "the job could not be started")
    if described["TrainingJobStatus"] == COMPLETED:
        return {"run": run, "job": job, "status": COMPLETED, "reason": None}
    return failed_outcome(run, job, json.dumps(dict(described), default=str))


def was_stopped(outcome: Outcome) -> bool:
    """Whether somebody stopped the job; one that reached a limit was not, it failed."""
    limited = could_not_run(outcome) or TIMED_OUT in str(outcome.get("reason"))
    return outcome["status"] == "Stopped" and not limited


def timed_out(outcome: Outcome) -> bool:
    """Whether the job reached its time limit."""
    return outcome["status"] == "Stopped" and TIMED_OUT in str(outcome.get("reason"))


def could_not_run(outcome: Outcome) -> bool:
    """Whether the cloud could not run the job, which says nothing about the arm."""
    return bool(outcome.get("infrastructure"))


def is_result(outcome: Outcome) -> bool:
    """Whether the run says something about its arm."""
    return not was_stopped(outcome) and not could_not_run(outcome)
