"""Stops jobs of a trial, those that have not started included, and records which ones."""

from __future__ import annotations

from collections.abc import Iterable

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.naming import RunId
from compilegate.ports import ObjectStore, Services, TrainingJobs
from compilegate.usecases.records import Trial, to_json


def stop_jobs(trial: Trial, jobs: TrainingJobs) -> list[str]:
    """Stop by name prefix, so that unrecorded jobs are stopped as well; returns their names."""
    active = _active(trial, jobs)
    for job in active:
        jobs.stop(job)
    return active


def stop_round(trial: Trial, runs: Iterable[RunId], *, services: Services) -> None:
    """Stop every job in progress, and ``runs`` that have no job yet, while the trial continues."""
    jobs = services.jobs.statuses(naming.trial_job_prefix(trial.workload, trial.trial))
    started = {naming.job_run(trial.workload, trial.trial, job) for job in jobs}
    withdraw([run for run in runs if run not in started], trial, services=services)
    stop_as_own(_active(trial, services.jobs), trial, services=services)


def withdraw(runs: Iterable[RunId], trial: Trial, *, services: Services) -> None:
    """Take back the requests of runs that have not started, for the trial's own reasons.

    A run that has read its request already still starts.
    """
    at = {"at": services.clock.now()}
    for run in runs:
        job = f"{naming.job_base(trial.workload, trial.trial, run.text)}{naming.FIRST_TRY}"
        services.store.put(naming.stop_key(trial.workload, trial.trial, job), to_json(at))
        request = naming.request_key(trial.workload, trial.trial, run.text)
        services.store.put(request, to_json({naming.WITHDRAWN: at}))


def stop_as_own(jobs: Iterable[str], trial: Trial, *, services: Services) -> None:
    """Stop jobs for the trial's own reasons, which is recorded before the job can end."""
    for job in jobs:
        stopped = naming.stop_key(trial.workload, trial.trial, job)
        services.store.put(stopped, to_json({"at": services.clock.now()}))
        services.jobs.stop(job)


def stopped_by_trial(job: str, trial: Trial, store: ObjectStore) -> bool:
    """Whether it was the trial that stopped the job."""
    try:
        store.get(naming.stop_key(trial.workload, trial.trial, job))
    except NotFoundError:
        return False
    return True


def _active(trial: Trial, jobs: TrainingJobs) -> list[str]:
    same_prefix = jobs.active(naming.trial_job_prefix(trial.workload, trial.trial))
    return naming.own_jobs(trial.workload, trial.trial, same_prefix)
