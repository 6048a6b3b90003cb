"""Stops every job that a trial has in progress."""

from __future__ import annotations

from compilegate.domain import naming
from compilegate.ports import Services
from compilegate.usecases.trial import Trial


def stop_jobs(trial: Trial, *, services: Services) -> list[str]:
    """Stop by name prefix, so that a job nobody wrote down is stopped as well."""
    active = services.jobs.active(naming.trial_job_prefix(trial.workload, trial.trial))
    for job in active:
        services.jobs.stop(job)
    return list(active)
