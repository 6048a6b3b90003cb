"""Writes a trial's arms as MLflow runs, by MLflow's own client (mlflow-skinny)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate_exports.arm_runs import ArmRun

# mlflow.utils.validation: what a metric's name may consist of, and how many one request takes.
_NOT_IN_NAMES = re.compile(r"[^\w.\- /]")
MOST_METRICS = 1000
PARAM_MAX, TAG_MAX = 6000, 8000
EXPERIMENT = "compilegate/{workload}"


def write_runs(runs: Sequence[ArmRun], folder: Path | None) -> str:
    """A finished run per arm in the workload's experiment; returns the tracking server's URI.

    Without a folder they go to MLFLOW_TRACKING_URI. A run exported before is replaced. Raises
    EnvironmentNotReadyError where the package is missing.
    """
    try:
        from mlflow import MlflowClient  # noqa: PLC0415 - an extra
        from mlflow.entities import Metric, Param, RunTag  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EnvironmentNotReadyError(
            f"MLflow is not installed ({error})", fix="pip install mlflow-skinny"
        ) from error
    if folder is not None:  # a store of plain files, which MLflow otherwise advises against
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    client = MlflowClient(None if folder is None else folder.absolute().as_uri())
    experiment = _experiment(client, runs[0].workload)
    for run in runs:
        for old in client.search_runs([experiment], _same(run)):
            client.delete_run(old.info.run_id)
        at = run.at * 1000
        created = client.create_run(experiment, start_time=at, run_name=run.name)
        run_id = created.info.run_id
        metrics = [Metric(name, value, at, step) for name, value, step in _metrics(run)]
        params = [Param(name, value[:PARAM_MAX]) for name, value in run.params.items()]
        tags = [RunTag(name, value[:TAG_MAX]) for name, value in run.tags.items()]
        client.log_batch(run_id, params=params, tags=tags)
        for first in range(0, len(metrics), MOST_METRICS):
            client.log_batch(run_id, metrics=metrics[first : first + MOST_METRICS])
        client.set_terminated(run_id, end_time=at)
    return str(client.tracking_uri)


def _experiment(client: Any, workload: str) -> str:
    name = EXPERIMENT.format(workload=workload)
    experiment = client.get_experiment_by_name(name)
    return str(experiment.experiment_id if experiment else client.create_experiment(name))


def _same(run: ArmRun) -> str:
    """Selects the run of an earlier export; names of workloads, trials and arms have no quotes."""
    return f"tags.`compilegate.trial` = '{run.trial}' and tags.`compilegate.arm` = '{run.arm}'"


def _metrics(run: ArmRun) -> Iterator[tuple[str, float, int]]:
    for name, value in run.figures.items():
        yield _NOT_IN_NAMES.sub("_", name), value, 0
    for name, points in run.series.items():
        for step, value in points:
            yield _NOT_IN_NAMES.sub("_", name), value, step
