"""Counts what an operator wants an alarm for, as CloudWatch metrics written to the log.

The embedded metric format (Amazon CloudWatch user guide, "Specification: Embedded metric
format"): CloudWatch reads a metric out of a JSON log line that has an ``_aws`` member.
"""

from __future__ import annotations

import logging
from typing import Any

from compilegate.domain.metrics import NAMESPACE, STAGE
from compilegate.ports import Services

logger = logging.getLogger("compilegate")


def count(metric: str, message: str, *, services: Services, **fields: Any) -> None:
    """Log a warning that counts as one of ``metric``; ``fields`` say what it was about."""
    metrics = {
        "Namespace": NAMESPACE,
        "Dimensions": [[STAGE]],
        "Metrics": [{"Name": metric, "Unit": "Count"}],
    }
    written = {"Timestamp": services.clock.now() * 1000, "CloudWatchMetrics": [metrics]}
    extra = {**fields, "_aws": written, STAGE: services.settings.stage, metric: 1}
    logger.warning("%s", message, extra=extra)
