"""A training job did not complete: stop its siblings and say why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.failures import explain_job
from compilegate.ports import Services
from compilegate.usecases.stop_jobs import stop_jobs
from compilegate.usecases.trial import Trial


def settle_failed_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """The run's outcome for the judge; the round's other jobs can no longer change it."""
    trial = Trial.from_event(event)
    failure = explain_job(str(event.get("cause", "")))
    stop_jobs(trial, services=services)
    return {
        "run": event["run"],
        "job": event["job"],
        "status": failure.status,
        "reason": failure.reason,
        "infrastructure": failure.infrastructure,
        "billable_seconds": failure.billable_seconds,
    }
