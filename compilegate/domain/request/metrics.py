"""Which numbers SageMaker reads from a job's log."""

from __future__ import annotations

import re

# Metrics a job prints on lines that start with `compilegate `.
PROGRESS_METRICS = ("step", "steps", "seconds", "samples_per_second", "loss")
NUMBER = r"([-+0-9.eE]+|nan|inf)"


def metric_definitions(metric: str) -> list[dict[str, str]]:
    """Progress and the quality metric, by the pattern of their log line."""
    names = dict.fromkeys((*PROGRESS_METRICS, metric))
    return [
        {"Name": name, "Regex": rf"^compilegate .*\b{re.escape(name)}={NUMBER}"} for name in names
    ]
