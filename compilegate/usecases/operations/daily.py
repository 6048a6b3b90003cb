"""Once a day: cleans up after ended executions, records the day's metrics, limits log retention."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from compilegate.domain import naming
from compilegate.domain.metrics import (
    DECISIONS,
    FAILED_RUNS,
    FLAGS_ON,
    PRODUCTION_RUNS,
    PRODUCTION_USD,
    SAVED_USD,
    TRIAL_USD,
    VERDICT,
    WAITED_RUNS,
)
from compilegate.domain.production.day import DayFigures, day_of
from compilegate.domain.production.history import history
from compilegate.ports import ExecutionEnds, Services, Topic, TrainingLogs
from compilegate.usecases.operations.metrics import measure
from compilegate.usecases.operations.sweep import sweep

logger = logging.getLogger("compilegate")

DAY_SECONDS = 24 * 3600
# Reading is waiting: so many requests are under way at once.
AT_ONCE = 32


def measure_day(*, services: Services) -> DayFigures:
    """Write the figures of the last 24 hours as metrics; a workload that cannot be read is logged.

    Repeating it writes the same again, which the dashboard's daily maximum takes once.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        names = services.store.folders(naming.WORKLOADS_PREFIX)
        days = pool.map(lambda name: _day(name, services), names)
        total = sum(days, DayFigures())
    measure(
        {
            TRIAL_USD: total.trial_usd,
            PRODUCTION_RUNS: total.production_runs,
            FAILED_RUNS: total.failed_runs,
            WAITED_RUNS: total.waited_runs,
            PRODUCTION_USD: total.production_usd,
            SAVED_USD: total.saved_usd,
            FLAGS_ON: total.flags_on,
        },
        "the figures of the last 24 hours",
        services=services,
    )
    for verdict, number in sorted(total.decisions.items()):
        message = f"decisions of the last 24 hours: {verdict}"
        measure({DECISIONS: number}, message, services=services, **{VERDICT: verdict})
    return total


def _day(workload: str, services: Services) -> DayFigures:
    now = services.clock.now()
    try:
        entries = services.ledger.entries(workload)
        return day_of(history(entries), since=now - DAY_SECONDS, until=now)
    except Exception:
        logger.exception("%s: its day cannot be read", workload)
        return DayFigures()


def daily(
    event: Mapping[str, Any],
    *,
    services: Services,
    ends: ExecutionEnds,
    topic: Topic,
    training_logs: TrainingLogs,
) -> dict[str, Any]:
    """Do all three, the others also where one fails; returns what was swept."""
    try:
        return sweep(event, services=services, ends=ends, topic=topic)
    finally:
        try:
            measure_day(services=services)
        finally:
            training_logs.limit_retention()
