"""Stops jobs of a trial, those that have not started included, and records which ones."""

from __future__ import annotations

from collections.abc import Collection

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.failures import IN_PROGRESS
from compilegate.domain.naming import RunId
from compilegate.ports import ObjectStore, Services
from compilegate.usecases.records import Trial, to_json
from compilegate.usecases.started_jobs import names_of_runs


def stop_runs(trial: Trial, runs: Collection[RunId], *, services: Services) -> None:
    """Stop the jobs of these runs, and take back the requests of those that have none yet.

    For the trial's own reasons, which are recorded before a job can end. A run that has read its
    request already still starts.
    """
    at = {"at": services.clock.now()}
    jobs = services.jobs.describe_all(names_of_runs(trial, runs))
    started = {naming.job_run(trial.workload, trial.trial, job) for job in jobs}
    for run in runs:
        if run not in started:
            job = f"{naming.job_base(trial.workload, trial.trial, run.text)}{naming.FIRST_TRY}"
            services.store.put(naming.stop_key(trial.workload, trial.trial, job), to_json(at))
            request = naming.request_key(trial.workload, trial.trial, run.text)
            services.store.put(request, to_json({naming.WITHDRAWN: at}))
    for job, described in jobs.items():
        if described["TrainingJobStatus"] == IN_PROGRESS:
            services.store.put(naming.stop_key(trial.workload, trial.trial, job), to_json(at))
            services.jobs.stop(job)


def stopped_by_trial(job: str, trial: Trial, store: ObjectStore) -> bool:
    """Whether it was the trial that stopped the job."""
    try:
        store.get(naming.stop_key(trial.workload, trial.trial, job))
    except NotFoundError:
        return False
    return True
