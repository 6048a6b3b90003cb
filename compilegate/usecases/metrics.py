"""Counts what an operator wants an alarm for, as CloudWatch metrics written to the log.

The embedded metric format (Amazon CloudWatch user guide, "Specification: Embedded metric
format"): CloudWatch reads a metric out of a JSON log line that has an ``_aws`` member.
"""

from __future__ import annotations

import logging
from typing import Any

from compilegate.ports import Services

NAMESPACE = "Compilegate"
STAGE = "Stage"
# A flag that may be on was not followed: unreadable, malformed, not what the ledger says, or of
# overrides that do not fit.
FLAG_PROBLEMS = "FlagProblems"

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
