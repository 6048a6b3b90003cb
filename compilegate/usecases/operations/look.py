"""What the daily pass reads of a ledger, once: what began in two weeks, all trials, and the day."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compilegate.domain import ledger_keys
from compilegate.domain.fleet.month import history_since, month_at
from compilegate.domain.fleet.row import Row
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.savings import booked_at
from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.domain.records.production import BegunRun, ProductionRun
from compilegate.domain.records.trials import TrialStarted
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services
from compilegate.usecases.fleet.repair import SOUND, RowRepair
from compilegate.usecases.operations.left_jobs import Suspect, suspects

# Lost runs are looked for as long as the queue of dead letters keeps the event (stacks/stack.py).
LOOK_BACK_SECONDS = 14 * DAY_SECONDS
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


def look_at(workload: str, lease: str | None, rows: RowRepair, services: Services) -> Look:
    """Read one workload's ledger, and fold its row anew where that lags behind it.

    ``lease`` is the execution that holds it. What fails is logged.
    """
    now = services.clock.now()
    try:
        past = services.ledger.recent(workload, now - LOOK_BACK_SECONDS)
        found = Look(
            workload,
            suspects=tuple(suspects(workload, past, now=now)),
            runs=[
                one
                for one in past.begun
                if one.run not in past.ended_runs and one.at > now - LOOK_BACK_SECONDS
            ],
            trials=[one for one in past.started if one.trial not in past.ended_trials],
            row=rows.check(workload, past, lease),
        )
        if lease is not None or found.suspects or found.runs or found.trials:
            return replace(found, day=None)
        row = rows.row(workload) if found.row == SOUND else None
        return replace(found, day=figures_of_day(workload, past, row, services))
    except Exception as error:
        logger.exception("%s: its ledger cannot be read", workload)
        return Look(workload, failure=error)


def day_by_ledger(workload: str, services: Services) -> DayFigures:
    """The figures of the last 24 hours by the ledger alone; none where it cannot be read."""
    since = services.clock.now() - LOOK_BACK_SECONDS
    try:
        past = services.ledger.recent(workload, since)
        return figures_of_day(workload, past, None, services)
    except Exception:
        logger.exception("%s: its day cannot be read", workload)
        return DayFigures()


def figures_of_day(
    workload: str, past: WorkloadHistory, row: Row | None, services: Services
) -> DayFigures:
    """The figures of the last 24 hours; what ``past`` and the row do not say is read."""
    until = services.clock.now()
    since = until - DAY_SECONDS
    for record in past.damaged:
        logger.error("%s: %s", workload, record.problem)
    runs = past.runs
    if not _has_whole_day(runs, row, since) or any(
        run.arm != BASELINE and booked_at(run) >= since for run in runs
    ):  # a saving is told by the runs of months
        months = services.ledger.history(
            workload, ledger_keys.RUN_ENTRIES, since=history_since(month_at(since))
        )
        runs = months.runs
    if row is not None and row.flag is not None:
        day = day_of(replace(past, runs=runs), since=since, until=until)
        return replace(day, flags_on=int(row.flag.enabled))
    flags = services.ledger.history(workload, ledger_keys.FLAG_ENTRIES).flags
    return day_of(replace(past, runs=runs, readable_flags=flags), since=since, until=until)


def _has_whole_day(runs: Sequence[ProductionRun], row: Row | None, since: float) -> bool:
    """Whether all runs of the day are there: one that ended in it may have begun long before."""
    if row is None:
        return False
    last = None if row.last_run is None else row.last_run.at
    return last is None or last < since or any(int(run.ended_at) == last for run in runs)
