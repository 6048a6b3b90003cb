"""Writes a trial's arms as offline runs of Weights & Biases, by its own package."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate_exports.arm_runs import ArmRun, Point

PROJECT = "compilegate"
FOLDER = Path("compilegate-wandb")


def write_runs(runs: Sequence[ArmRun], folder: Path | None) -> str:
    """An offline run per arm; returns the folder, which ``wandb sync`` uploads.

    A run's id is that of its trial and arm, so that another upload continues the same run. Raises
    EnvironmentNotReadyError where the package is missing.
    """
    try:
        import wandb  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EnvironmentNotReadyError(
            f"Weights & Biases is not installed ({error})", fix="pip install wandb"
        ) from error
    place = folder or FOLDER
    place.mkdir(parents=True, exist_ok=True)
    for run in runs:
        logged = wandb.init(
            project=PROJECT,
            group=f"{run.workload}-{run.trial}",
            name=run.name,
            id=f"{run.workload}-{run.name}",
            config={**run.params, **run.tags},
            dir=str(place),
            mode="offline",
            reinit="finish_previous",
            settings=wandb.Settings(
                silent=True, x_disable_stats=True, disable_git=True, disable_code=True
            ),
        )
        for prefix, steps in _by_prefix(run.series).items():
            logged.define_metric(f"{prefix}/step", hidden=True)
            logged.define_metric(f"{prefix}/*", step_metric=f"{prefix}/step")
            for step, values in sorted(steps.items()):
                logged.log({f"{prefix}/step": step, **values})
        logged.summary.update(dict(run.figures))
        logged.finish()
    wandb.teardown()  # until then the last run's file may be incomplete
    return str(place)


def _by_prefix(
    series: Mapping[str, Sequence[Point]],
) -> Mapping[str, Mapping[int, Mapping[str, float]]]:
    """Values by the first part of their names and by step: blocks, runs and losses count apart."""
    by_prefix: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for name, points in series.items():
        for step, value in points:
            by_prefix[name.partition("/")[0]][step][name] = value
    return by_prefix
