"""``compilegate export``: a decision in the formats of tools that teams look at anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.outcome import newest_decision
from compilegate.cli.common.session import Invocation, on_cloud, workload_names
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.usecases.records import Trial
from compilegate.usecases.reports import trial_report
from compilegate_exports import mlflow_runs, wandb_runs
from compilegate_exports.arm_runs import ArmRun, arm_runs
from compilegate_exports.junit import junit
from compilegate_exports.openmetrics import openmetrics

TEMPLATES = Path(__file__).with_name("templates")


class Target(StrEnum):
    """What ``--to`` takes."""

    JUNIT = "junit"
    OPENMETRICS = "openmetrics"
    MLFLOW = "mlflow"
    WANDB = "wandb"


TEXTS: Mapping[Target, Callable[..., str]] = {
    Target.JUNIT: junit,
    Target.OPENMETRICS: openmetrics,
}
# Each loads its own client.
TRACKERS: Mapping[Target, Callable[[Sequence[ArmRun], Path | None], str]] = {
    Target.MLFLOW: mlflow_runs.write_runs,
    Target.WANDB: wandb_runs.write_runs,
}


@on_cloud
def export(
    invocation: Invocation,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="TRIAL",
            help="A workload, for its newest trial, or WORKLOAD-ID as in status.",
            autocompletion=workload_names,
        ),
    ] = None,
    *,
    to: Annotated[Target, typer.Option("--to", help="The format or tool.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The file, for trackers the folder. Default: standard output."),
    ] = None,
) -> None:
    """Export a decision to CI, dashboards or a tracker.

    Default: the newest decision of the stage.

    \b
    compilegate export bert-docs --to junit --out results/compilegate.xml
    compilegate export bert-docs --to openmetrics > compilegate.prom
    compilegate export demo-lm-0mabc123 --to mlflow --out mlruns --local
    compilegate export bert-docs --to wandb

    junit: a test case per candidate: promoted passes, rejected fails, not proven or not eligible
    is skipped, an unfair comparison is an error. mlflow and wandb: a run per arm with parameters,
    figures, curves and the verdict as tags; mlflow to MLFLOW_TRACKING_URI unless --out is given,
    wandb offline. They need compilegate-exports[mlflow] or [wandb].
    """
    cloud = invocation.open_records()
    trial, at = _decided(name, cloud)
    try:
        report = trial_report(trial, cloud.services)
    except ValueError as error:
        raise NotFoundError(
            f"trial {trial.trial} of {trial.workload} left no decision document"
        ) from error
    if to in TEXTS:
        text = TEXTS[to](report, trial=trial.trial, at=at)
        if out is not None:
            write_whole(out, text.encode())
        elif not invocation.as_json:
            typer.echo(text, nl=False)
            return
        document = {"file": None if out is None else str(out), "text": text}
        invocation.answer(document, "path", path=out)
        return
    runs = arm_runs(report, trial=trial.trial, at=at)
    if not runs:
        raise NotFoundError(
            f"trial {trial.trial} of {trial.workload} measured nothing, so there is no run to "
            "export",
            fix="use --to junit, which shows the reasons",
        )
    where = {"to": TRACKERS[to](runs, out), "runs": [run.name for run in runs]}
    invocation.answer(where, TEMPLATES / "export")


def _decided(name: str | None, cloud: Cloud) -> tuple[Trial, int]:
    """The newest decided trial that the name stands for, and when it was decided.

    Raises InvalidInputError for none.
    """
    newest = newest_decision(name, None, cloud)
    if newest is None and name is not None:
        workload, _, trial = name.rpartition("-")
        newest = newest_decision(workload, trial, cloud)
    if newest is None:
        raise InvalidInputError(
            "is no trial with a decision" if name else "there is no decision yet", field="TRIAL",
            value=name, fix=f"`{cloud.command('status')}` lists the trials",
        )  # fmt: skip
    return newest[0], newest[1].at
