"""Which training jobs ended executions may have left: of recent trials and runs, by their names.

The clean-up after an execution stops its jobs. Left are those of an execution whose clean-up was
lost, which the ledger shows as begun and not ended, and one that CreateTrainingJob started in the
moment in which its execution was stopped, which the clean-up may not have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import IN_PROGRESS
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.orphans import TaggedJob
from compilegate.domain.production.recorded_run import RECENT_SECONDS, may_go_on
from compilegate.domain.records.production import BegunRun
from compilegate.ports import Services
from compilegate.usecases.records import Trial
from compilegate.usecases.started_jobs import (
    jobs_of_run,
    jobs_of_trial,
    recorded_jobs,
    requested_runs,
)

# So long after a trial's end each sweep looks at what its clean-up may have missed.
ENDED_TRIAL_SECONDS = 7 * DAY_SECONDS


@dataclass(frozen=True)
class Suspect:
    """An execution that may have left jobs: of a trial, or of a production run."""

    workload: str
    execution: str
    of: str | BegunRun
    history: WorkloadHistory


def suspects(workload: str, history: WorkloadHistory, services: Services) -> Iterator[Suspect]:
    """The executions of a workload that may have left jobs; most of them still run."""
    now = services.clock.now()
    decided = {one.trial: one.at for one in history.decided}
    ends = {one.trial: one.at for one in history.failed} | decided
    for started in history.started:
        if ends.get(started.trial, now) < now - ENDED_TRIAL_SECONDS:
            continue
        if started.trial in decided and _all_recorded(Trial(workload, started.trial, ""), services):
            continue
        yield Suspect(workload, started.execution, started.trial, history)
    for begun in history.begun:
        runs = [run for run in history.runs if run.run == begun.run]
        if may_go_on(runs, since=now - RECENT_SECONDS):
            yield Suspect(workload, begun.execution, begun, history)


def _all_recorded(trial: Trial, services: Services) -> bool:
    """Whether the judge has seen a run of each job that was asked for, so that all have ended."""
    records = recorded_jobs(trial, services)
    jobs = () if records is None else records.with_runs
    recorded = {naming.job_run(trial.workload, trial.trial, job) for job in jobs}
    return recorded.issuperset(requested_runs(trial, services.store))


def left_by(suspect: Suspect, services: Services) -> Iterator[TaggedJob]:
    """The jobs in progress of an execution that has ended."""
    if isinstance(suspect.of, BegunRun):
        jobs = jobs_of_run(suspect.workload, suspect.of, suspect.history, services)
    else:
        trial = Trial(suspect.workload, suspect.of, "")
        jobs = jobs_of_trial(trial, recorded_jobs(trial, services), services)
    for name, described in jobs.items():
        if described["TrainingJobStatus"] == IN_PROGRESS:
            tagged = _tagged(name, described, services.jobs.tags(name))
            if tagged is not None:
                yield tagged


def _tagged(name: str, described: Mapping[str, Any], tags: Mapping[str, str]) -> TaggedJob | None:
    """The job with its tags; None for one that has none of ours."""
    try:
        return TaggedJob(
            name=name,
            workload=tags[naming.TAG_WORKLOAD],
            execution=tags[naming.TAG_EXECUTION],
            stage=tags[naming.TAG_STAGE],
            created=int(described["CreationTime"].timestamp()),
            owner=tags.get("owner"),
        )
    except KeyError:
        return None
