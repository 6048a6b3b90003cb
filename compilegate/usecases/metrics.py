"""CloudWatch metrics written to the log.

The embedded metric format (Amazon CloudWatch user guide, "Specification: Embedded metric
format"): CloudWatch reads a metric out of a JSON log line that has an ``_aws`` member.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import arithmetic
from compilegate.ports import Services

logger = logging.getLogger("compilegate")


def count(metric: str, message: str, *, services: Services, **fields: Any) -> None:
    """Log a warning that counts as one of ``metric``; ``fields`` say what it was about."""
    logger.warning("%s", message, extra={**fields, **_embedded({metric: 1}, {}, services)})


def measure(
    values: Mapping[str, float], message: str, services: Services, **dimensions: str
) -> None:
    """Log values of metrics; ``dimensions`` tell them apart, beside the stage."""
    logger.info("%s", message, extra=_embedded(values, dimensions, services))


def _embedded(
    values: Mapping[str, float], dimensions: Mapping[str, str], services: Services
) -> dict[str, Any]:
    directive = {
        "Namespace": arithmetic.NAMESPACE,
        "Dimensions": [[arithmetic.STAGE, *dimensions]],
        "Metrics": [
            {"Name": name, "Unit": "None" if name.endswith("Usd") else "Count"} for name in values
        ],
    }
    written = {"Timestamp": services.clock.now() * 1000, "CloudWatchMetrics": [directive]}
    return {**values, **dimensions, "_aws": written, arithmetic.STAGE: services.settings.stage}
