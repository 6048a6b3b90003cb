"""CloudWatch metrics written to the log: the day's figures, and what an operator is alarmed by.

The embedded metric format (Amazon CloudWatch user guide, "Specification: Embedded metric
format"): CloudWatch reads a metric out of a JSON log line that has an ``_aws`` member.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from compilegate.domain import metrics
from compilegate.domain.production.history import history
from compilegate.domain.production.summaries import DayFigures, day_of
from compilegate.ports import Services
from compilegate.usecases.registration.load import for_each_workload

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


def count(metric: str, message: str, *, services: Services, **fields: Any) -> None:
    """Log a warning that counts as one of ``metric``; ``fields`` say what it was about."""
    logger.warning("%s", message, extra={**fields, **_embedded({metric: 1}, {}, services)})


def measure_day(*, services: Services) -> DayFigures:
    """Write the figures of the last 24 hours as metrics; a workload that cannot be read is logged.

    Repeating it writes the same again, which the dashboard's daily maximum takes once.
    """
    days = for_each_workload(lambda name: _day(name, services), services.store)
    total = sum(days, DayFigures())
    values = asdict(total)
    figures = {metric: values[name] for name, metric in FIGURES.items()}
    _measure(figures, "the figures of the last 24 hours", services)
    for verdict, number in sorted(total.decisions.items()):
        message = f"decisions of the last 24 hours: {verdict}"
        _measure({metrics.DECISIONS: number}, message, services, **{metrics.VERDICT: verdict})
    return total


def _day(workload: str, services: Services) -> DayFigures:
    now = services.clock.now()
    try:
        entries = services.ledger.entries(workload)
        return day_of(history(entries), since=now - DAY_SECONDS, until=now)
    except Exception:
        logger.exception("%s: its day cannot be read", workload)
        return DayFigures()


def _measure(
    values: Mapping[str, float], message: str, services: Services, **dimensions: str
) -> None:
    """Log values of metrics; ``dimensions`` tell them apart, beside the stage."""
    logger.info("%s", message, extra=_embedded(values, dimensions, services))


def _embedded(
    values: Mapping[str, float], dimensions: Mapping[str, str], services: Services
) -> dict[str, Any]:
    directive = {
        "Namespace": metrics.NAMESPACE,
        "Dimensions": [[metrics.STAGE, *dimensions]],
        "Metrics": [
            {"Name": name, "Unit": "None" if name.endswith("Usd") else "Count"} for name in values
        ],
    }
    written = {"Timestamp": services.clock.now() * 1000, "CloudWatchMetrics": [directive]}
    return {**values, **dimensions, "_aws": written, metrics.STAGE: services.settings.stage}
