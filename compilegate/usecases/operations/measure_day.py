"""The deployment's figures of the last 24 hours, as CloudWatch metrics."""

from __future__ import annotations

import logging
from dataclasses import asdict

from compilegate.domain import metrics
from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.ports import Services
from compilegate.usecases.metrics import measure
from compilegate.usecases.registered import for_each_workload

DAY_SECONDS = 24 * 3600
FIGURES = {
    "trial_usd": metrics.TRIAL_USD,
    "production_runs": metrics.PRODUCTION_RUNS,
    "failed_runs": metrics.FAILED_RUNS,
    "waited_runs": metrics.WAITED_RUNS,
    "production_usd": metrics.PRODUCTION_USD,
    "saved_usd": metrics.SAVED_USD,
    "flags_on": metrics.FLAGS_ON,
}
logger = logging.getLogger("compilegate")


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
        measure({metrics.DECISIONS: number}, message, services, **{metrics.VERDICT: verdict})
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
