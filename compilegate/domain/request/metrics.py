"""Which numbers SageMaker reads from a job's log."""

from __future__ import annotations

import re

# How a line of progress starts. Under mpirun's ``--tag-output`` the process stands before it:
# ``[1,0]<stdout>:`` as Open MPI writes it, ``[1,mpirank:0,algo-1]<stdout>:`` as the container
# toolkit rewrites that (process.py of sagemaker-training 5.1.1); Open MPI 5 adds a space.
PROGRESS_LINE = r"^(?:\[[^\]]*\]<stdout>: ?)?compilegate "
# Metrics a job prints on such lines.
PROGRESS_METRICS = ("step", "steps", "seconds", "samples_per_second", "loss")
NUMBER = r"([-+0-9.eE]+|nan|inf)"


def metric_definitions(metric: str) -> list[dict[str, str]]:
    """Progress and the quality metric, by the pattern of their log line."""
    names = dict.fromkeys((*PROGRESS_METRICS, metric))
    return [
        {"Name": name, "Regex": rf"{PROGRESS_LINE}.*\b{re.escape(name)}={NUMBER}"} for name in names
    ]
