"""Once a day: cleans up after ended executions, records the day's metrics, limits log retention.

Safe to repeat. What the sweep did is in the ledger and published.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from itertools import chain
from typing import Any

from compilegate.domain import arithmetic, ledger_keys, naming
from compilegate.domain.production import orphans
from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.domain.records.ledger import Swept
from compilegate.domain.records.production import BegunRun
from compilegate.domain.records.trials import TrialStarted
from compilegate.ports import Services, Topic, TrainingLogs
from compilegate.report.notifications.production import swept as swept_message
from compilegate.usecases.metrics import measure
from compilegate.usecases.operations.left_jobs import Suspect, left_by, suspects
from compilegate.usecases.production.record_run import record_ended_execution
from compilegate.usecases.registered import for_each_workload, try_each
from compilegate.usecases.trial.abort_trial import abort_trial, clean_up_after

# Lost runs are looked for as long as the queue of dead letters keeps the event (stacks/stack.py).
LOOK_BACK_SECONDS = 14 * 24 * 3600
DAY_SECONDS = 24 * 3600
FIGURES = {
    "trial_usd": arithmetic.TRIAL_USD,
    "production_runs": arithmetic.PRODUCTION_RUNS,
    "failed_runs": arithmetic.FAILED_RUNS,
    "waited_runs": arithmetic.WAITED_RUNS,
    "production_usd": arithmetic.PRODUCTION_USD,
    "saved_usd": arithmetic.SAVED_USD,
    "flags_on": arithmetic.FLAGS_ON,
}
EndOf = Callable[[str], orphans.ExecutionEnd | None]
logger = logging.getLogger("compilegate")


def daily(
    event: Mapping[str, Any],
    *,
    services: Services,
    topic: Topic,
    training_logs: TrainingLogs,
) -> dict[str, Any]:
    """Do all three, the others also where one fails; returns what was swept."""
    try:
        return sweep(event, services=services, topic=topic)
    finally:
        try:
            measure_day(services=services)
        finally:
            training_logs.limit_retention()


def sweep(event: Mapping[str, Any], *, services: Services, topic: Topic) -> dict[str, Any]:
    """Stop jobs and release leases that no running execution answers for, record lost runs.

    Trials that have begun and whose execution has ended badly get an end.

    ``grace_seconds`` of the event shortens how long after an execution's end it is left alone.
    What fails does not keep back the rest; raises the last failure at the end, so that it sets off
    an alarm.
    """
    grace_seconds = float(event.get("grace_seconds", orphans.GRACE_SECONDS))
    now, end_of = services.clock.now(), cache(services.ends.end_of)
    names = list(services.store.folders(naming.WORKLOADS_PREFIX))
    leases = sorted(services.locks.holders(names).items())
    begun = chain(*for_each_workload(lambda name: _suspects(name, services, now), services.store))
    suspected = [
        one for one in begun if orphans.of_deployment(one.execution, services.settings.stage)
    ]
    executions = [*(one.execution for one in suspected), *(execution for _, execution in leases)]
    ends = {one: end for one in executions if (end := end_of(one)) is not None}
    jobs = [
        job
        for one in suspected
        if one.execution in ends and orphans.is_over(ends[one.execution], now, grace_seconds)
        for job in left_by(one, services)
    ]
    left = orphans.orphans_by_workload(jobs, leases, ends, now=now, grace_seconds=grace_seconds)
    try:
        try_each(
            ((f"{workload} was not swept", workload) for workload in left),
            lambda workload: _clean_up(workload, left[workload], ends, services, topic),
        )
    finally:
        try:
            _end_lost_trials(services, grace_seconds, end_of)
        finally:
            recorded = _record_lost_runs(services, grace_seconds, end_of)
    return {
        "stopped_jobs": sum(len(one.jobs) for one in left.values()),
        "released_leases": sum(len(one.leases) for one in left.values()),
        "recorded_runs": recorded,
    }


def _suspects(workload: str, services: Services, now: int) -> list[Suspect]:
    rows = ledger_keys.RUN_ENTRIES, ledger_keys.TRIAL_ENTRIES
    runs, trials = (
        services.ledger.history(workload, row, since=now - LOOK_BACK_SECONDS) for row in rows
    )
    return [*suspects(workload, runs, now=now), *suspects(workload, trials, now=now)]


def _clean_up(
    workload: str,
    left: orphans.Orphans,
    ends: Mapping[str, orphans.ExecutionEnd],
    services: Services,
    topic: Topic,
) -> bool:
    of_jobs = [job.execution for job in left.jobs]
    for execution in dict.fromkeys([*left.leases, *of_jobs]):
        clean_up_after(execution, ends[execution], services=services)
    for job in left.jobs:
        services.jobs.stop(job.name)
    for execution in left.leases:
        services.locks.release(workload, execution)
    swept = Swept(
        services.clock.now(),
        stopped_jobs=tuple(job.name for job in left.jobs),
        released_leases_of=left.leases,
    )
    services.ledger.append(workload, swept)
    message = swept_message(
        workload,
        stopped_jobs=swept.stopped_jobs,
        released_leases_of=swept.released_leases_of,
        owner=next((job.owner for job in left.jobs if job.owner), None),
        stage=services.settings.stage,
    )
    topic.publish(message)
    return True


def _record_lost_runs(services: Services, grace_seconds: float, end_of: EndOf) -> int:
    """Record production runs whose execution has ended without its record; returns of how many.

    The event of it was lost, or its job went on alone and has ended since. An execution that ended
    less than ``grace_seconds`` ago is left to its event.
    """
    now = services.clock.now()

    def unended(workload: str) -> list[tuple[str, BegunRun]]:
        past = services.ledger.history(workload, ledger_keys.RUN_ENTRIES)
        return [
            (f"{workload}: run {one.run} was not recorded", one)
            for one in past.begun
            if one.run not in past.ended_runs and one.at > now - LOOK_BACK_SECONDS
        ]

    def record(begun: BegunRun) -> bool:
        end = end_of(begun.execution)
        if end is None or end.status not in orphans.ENDED_BADLY or end.at is None:
            return False
        if not orphans.is_over(end, now, grace_seconds):
            return False
        return bool(record_ended_execution({"detail": end.detail}, services=services)["recorded"])

    return try_each(chain(*for_each_workload(unended, services.store)), record)


def _end_lost_trials(services: Services, grace_seconds: float, end_of: EndOf) -> int:
    """End trials that have begun and have no end, though their execution has ended badly.

    The event of its end was lost, or the clean-up failed each time. No lease and no job need be
    left of it: a clean-up writes the start of a trial that was stopped before its first step, and
    may fail right after. Otherwise as for lost runs.
    """

    def without_end(workload: str) -> list[tuple[str, TrialStarted]]:
        past = services.ledger.history(workload, ledger_keys.TRIAL_ENTRIES)
        return [
            (f"{workload}: trial {one.trial} was not ended", one)
            for one in past.started
            if one.trial not in past.ended_trials
        ]

    def end_trial(started: TrialStarted) -> bool:
        end = end_of(started.execution)
        if end is None or not orphans.lacks_clean_up(
            started.execution, end, services.settings.stage
        ):
            return False
        if not orphans.is_over(end, services.clock.now(), grace_seconds):
            return False
        abort_trial({"detail": end.detail}, services=services)
        return True

    return try_each(chain(*for_each_workload(without_end, services.store)), end_trial)


def measure_day(*, services: Services) -> DayFigures:
    """Write the figures of the last 24 hours as metrics; a workload that cannot be read is logged.

    Repeating it writes the same again, which the dashboard's daily maximum takes once.
    """
    days = for_each_workload(lambda name: _day(name, services), services.store)
    total = sum(days, DayFigures())
    values = asdict(total)
    figures = {metric: values[name] for name, metric in FIGURES.items()}
    measure(figures, "the figures of the last 24 hours", services)
    for verdict, number in sorted(total.decisions.items()):
        message = f"decisions of the last 24 hours: {verdict}"
        measure({arithmetic.DECISIONS: number}, message, services, **{arithmetic.VERDICT: verdict})
    return total


def _day(workload: str, services: Services) -> DayFigures:
    now = services.clock.now()
    try:
        past = services.ledger.history(workload)
        for record in past.damaged:
            logger.error("%s: %s", workload, record.problem)
        return day_of(past, since=now - DAY_SECONDS, until=now)
    except Exception:
        logger.exception("%s: its day cannot be read", workload)
        return DayFigures()
