"""Which jobs of a trial or of a production run there are: SageMaker is asked by name.

A list of jobs takes a page of all jobs of the account first and filters it then, so that its
length grows with what others train. The names are known instead: a run's request lies in the
bucket before its job can start, and the state machine adds one character for each try
(stacks/states.py). A try that was refused has no job, so names have gaps. One whose answer was
lost has a job that nothing waits for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from compilegate.domain import naming
from compilegate.domain.optional import with_known, without_none
from compilegate.domain.planning.rounds import MOST_RETRIES, THROTTLE_ATTEMPTS
from compilegate.domain.production.attempts import attempt_number
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.records.production import BegunRun
from compilegate.ports import ObjectStore, Services
from compilegate.usecases.records import UNREADABLE, Trial, find_record

if TYPE_CHECKING:
    from compilegate.domain.trial.evidence import TrialRecords

logger = logging.getLogger("compilegate")
Described = Mapping[str, Mapping[str, Any]]


def recorded_jobs(trial: Trial, services: Services) -> TrialRecords | None:
    """What is recorded of a trial's jobs; None where that cannot be read."""
    from compilegate.domain.trial.evidence import read_records  # noqa: PLC0415 - few steps read it

    try:
        return read_records(find_record(services.store, trial, "evidence"))
    except UNREADABLE:
        logger.exception("the evidence of %s cannot be read", trial.trial)
        return None


def jobs_of_trial(trial: Trial, records: TrialRecords | None, services: Services) -> Described:
    """All jobs of a trial, described.

    JudgeArms records a run only once it has looked for each of its tries: of such a run there are
    the recorded jobs and no others. Of any other run, every try is asked for.
    """
    workload, name = trial.workload, trial.trial
    jobs = [one.job for one in records.jobs] if records else []
    recorded = dict(with_known(jobs, lambda job: naming.job_run(workload, name, job)))
    requested = requested_runs(trial, services.store)
    names = names_of_runs(trial, (run for run in requested if run not in recorded.values()))
    return services.jobs.describe_all([*recorded, *names])


def requested_runs(trial: Trial, store: ObjectStore) -> list[naming.RunId]:
    """The runs whose requests were ever written: no job starts without one."""
    prefix = naming.requests_prefix(trial.workload, trial.trial)
    of = trial.workload, trial.trial
    names = (key.removeprefix(prefix).removesuffix(".json") for key in store.keys(prefix))
    jobs = (f"{naming.job_base(*of, name)}{naming.FIRST_TRY}" for name in names)
    # Whatever else lies there is no run.
    return without_none(naming.job_run(*of, job) for job in jobs)


def names_of_runs(trial: Trial, runs: Iterable[naming.RunId]) -> list[str]:
    """The names that the jobs of these runs may have."""
    bases = (naming.job_base(trial.workload, trial.trial, run.text) for run in runs)
    return [job for base in bases for job in naming.tries(base, MOST_RETRIES)]


def jobs_of_run(
    workload: str, begun: BegunRun, history: WorkloadHistory, services: Services
) -> Described:
    """The jobs of a production run that may not be recorded, described."""
    return services.jobs.describe_all(names_of_run(workload, begun, history))


def names_of_run(workload: str, begun: BegunRun, history: WorkloadHistory) -> Iterable[str]:
    """The names that jobs of a production run may have that are not recorded.

    An attempt begins once the one before it is recorded: every try of the latest and of the one
    that follows, and of each before them the tries that nothing waited for.
    """
    jobs = [
        *(run.job for run in history.runs if run.run == begun.run),
        *(wait.job for wait in history.waits_of(begun.run)),
    ]
    latest = max(map(attempt_number, jobs), default=-1)
    names = [
        name
        for number in range(max(latest, 0), latest + 2)
        for name in naming.tries(
            naming.job_base(workload, begun.run, naming.attempt(number)), THROTTLE_ATTEMPTS
        )
    ]
    earlier = (name for job in jobs for name in naming.earlier_tries(job))
    return dict.fromkeys([*earlier, *names])
