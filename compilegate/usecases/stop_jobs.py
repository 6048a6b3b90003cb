"""Stops jobs of a trial, and remembers which ones the trial stopped itself."""

from __future__ import annotations

from collections.abc import Iterable

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.ports import Services
from compilegate.usecases.trial import Trial, to_json


def stop_jobs(trial: Trial, *, services: Services) -> list[str]:
    """Stop by name prefix, so that a job nobody wrote down is stopped as well."""
    active = _active(trial, services)
    for job in active:
        services.jobs.stop(job)
    return active


def stop_round(trial: Trial, *, services: Services) -> None:
    """Stop every job in progress while the trial goes on."""
    stop_as_own(_active(trial, services), trial, services=services)


def stop_as_own(jobs: Iterable[str], trial: Trial, *, services: Services) -> None:
    """Stop jobs for the trial's own reasons, which is written down before the job can end."""
    for job in jobs:
        services.store.put(_key(trial, job), to_json({"at": services.clock.now()}))
        services.jobs.stop(job)


def stopped_by_trial(job: str, trial: Trial, *, services: Services) -> bool:
    """Whether it was the trial that stopped the job."""
    try:
        services.store.get(_key(trial, job))
    except NotFoundError:
        return False
    return True


def _active(trial: Trial, services: Services) -> list[str]:
    return list(services.jobs.active(naming.trial_job_prefix(trial.workload, trial.trial)))


def _key(trial: Trial, job: str) -> str:
    return naming.stop_key(trial.workload, trial.trial, job)
