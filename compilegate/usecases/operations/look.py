"""What the daily pass reads of a ledger: two weeks of runs, all else but reviews, and the day.

And as far back as the row names a run that may have left a job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import IN_PROGRESS
from compilegate.domain.fleet.month import history_since, month_at
from compilegate.domain.fleet.row import Row
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.orphans import TaggedJob
from compilegate.domain.production.recorded_run import LOOK_BACK_SECONDS, RECENT_SECONDS, may_go_on
from compilegate.domain.production.savings import booked_at
from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.domain.records.production import BegunRun, ProductionRun
from compilegate.domain.records.trials import TrialStarted
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services
from compilegate.usecases.fleet.repair import SOUND, RowRepair
from compilegate.usecases.records import Trial
from compilegate.usecases.started_jobs import (
    jobs_of_run,
    jobs_of_trial,
    recorded_jobs,
    requested_runs,
)

logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class Look:
    """One workload: executions that may have left jobs, runs and trials that have no end yet.

    ``day`` are the figures of the last 24 hours, None where the sweep may add to them. ``row`` is
    what was done with its row, ``failure`` why the ledger could not be read.
    """

    workload: str
    suspects: Sequence[Suspect] = ()
    runs: Sequence[BegunRun] = ()
    trials: Sequence[TrialStarted] = ()
    day: DayFigures | None = field(default_factory=DayFigures)
    row: str | None = None
    failure: Exception | None = None


def look_at(workload: str, lock: str | None, rows: RowRepair, services: Services) -> Look:
    """Read one workload's ledger, and fold its row anew where that lags behind it.

    ``lock`` is the execution that holds it. What fails is logged.
    """
    now = services.clock.now()
    try:
        history = services.ledger.recent(workload, _read_since(rows.row(workload), now))
        look = Look(
            workload,
            suspects=tuple(suspects(workload, history, services)),
            runs=[one for one in history.begun if one.run not in history.ended_runs],
            trials=history.open_trials,
            row=rows.check(workload, history, lock),
        )
        if lock is not None or look.suspects:  # each that has no end is one
            return replace(look, day=None)
        row = rows.row(workload) if look.row == SOUND else None
        return replace(look, day=_day(workload, lambda: history, row, services))
    except Exception as error:
        logger.exception("%s: its ledger cannot be read", workload)
        return Look(workload, failure=error)


def _read_since(row: Row | None, now: float) -> float:
    """From when on (epoch seconds) runs are read; without a row any may have left a job."""
    if row is None:
        return now - RUN_SECONDS
    began = map(naming.time_of, row.open_runs)
    return min([now - LOOK_BACK_SECONDS, *(at for at in began if at >= now - RUN_SECONDS)])


def day_by_ledger(workload: str, services: Services) -> DayFigures:
    """The figures of the last 24 hours by the ledger alone; none where it cannot be read."""
    since = services.clock.now() - LOOK_BACK_SECONDS
    return _day(workload, lambda: services.ledger.recent(workload, since), None, services)


def _day(
    workload: str, recent: Callable[[], WorkloadHistory], row: Row | None, services: Services
) -> DayFigures:
    """By what was read, and the row, where there is one; none where something cannot be read."""
    try:
        history = recent()
        for record in history.damaged:
            logger.error("%s: %s", workload, record.problem)
        return _figures(workload, history, row, services)
    except Exception:
        logger.exception("%s: its day cannot be read", workload)
        return DayFigures()


def _figures(
    workload: str, history: WorkloadHistory, row: Row | None, services: Services
) -> DayFigures:
    until = services.clock.now()
    since = until - DAY_SECONDS
    runs = history.runs
    if not _has_whole_day(runs, row, since) or any(
        run.arm != BASELINE and booked_at(run) >= since for run in runs
    ):  # what a run saved is told by the runs of months
        runs = services.ledger.runs(workload, history_since(month_at(since)))
    return day_of(replace(history, runs=runs), since=since, until=until)


def _has_whole_day(runs: Sequence[ProductionRun], row: Row | None, since: float) -> bool:
    """Whether all runs that ended since then are there: one may have begun long before."""
    if row is None:
        return False
    first = since // DAY_SECONDS
    ended = sum(run.ended_at // DAY_SECONDS >= first for run in runs)
    return ended == sum(one.runs for one in row.days if one.day >= first)


# Which training jobs ended executions may have left: of recent trials and runs, by their names.
#
# The clean-up after an execution stops its jobs. Left are those of an execution whose clean-up was
# lost, which the ledger shows as begun and not ended, and one that CreateTrainingJob started in the
# moment in which its execution was stopped, which the clean-up may not have seen.

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
