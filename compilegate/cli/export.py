"""``compilegate export``: a decision where a team looks anyway: CI, dashboards, trackers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.outcome import newest_decision
from compilegate.cli.common.session import Invocation, on_cloud, workload_names
from compilegate.domain.errors import (
    EnvironmentNotReadyError,
    InvalidInputError,
    NotFoundError,
    ProblemWithFix,
)
from compilegate.report.exports.junit import junit
from compilegate.report.exports.openmetrics import openmetrics
from compilegate.report.trial_report import read_trial_report
from compilegate.usecases.records import Trial
from compilegate.usecases.trial.write_report import trial_records


class Target(StrEnum):
    """What ``--to`` takes."""

    JUNIT = "junit"
    OPENMETRICS = "openmetrics"
    MLFLOW = "mlflow"
    WANDB = "wandb"


# The group of entry points that the functions of trackers are found by, each under its target.
TRACKERS = "compilegate.trackers"
TEXTS: Mapping[Target, Callable[..., str]] = {
    Target.JUNIT: junit,
    Target.OPENMETRICS: openmetrics,
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
    wandb offline. They need compilegate-trackers[mlflow] or [wandb].
    """
    cloud = invocation.open_records()
    trial, at = _decided(name, cloud)
    try:
        report = read_trial_report(trial_records(trial, cloud.services))
    except ValueError as error:
        raise NotFoundError(
            f"trial {trial.trial} of {trial.workload} left no decision document"
        ) from error
    if to in TEXTS:
        text = TEXTS[to](report, trial=trial.trial, at=at)
        if out is not None:
            write_whole(out, text.encode())
        if not invocation.as_json and out is None:
            typer.echo(text, nl=False)
        else:
            document = {"file": None if out is None else str(out), "text": text}
            invocation.answer(document, "path", path=out)
        return
    from compilegate.report.exports.arm_runs import arm_runs  # noqa: PLC0415 - with the tracker

    runs = arm_runs(report, trial=trial.trial, at=at)
    if not runs:
        raise NotFoundError(
            ProblemWithFix(
                f"trial {trial.trial} of {trial.workload} measured nothing, so there is no run to "
                "export",
                fix="use --to junit, which shows the reasons",
            )
        )
    where = {"to": _writer(to)(runs, out), "runs": [run.name for run in runs]}
    invocation.answer(where, "export")


def _writer(to: Target) -> Callable[..., str]:
    """What writes runs to a tracker: a plug-in's function (distributions/trackers)."""
    for plug_in in entry_points(group=TRACKERS, name=to):
        writer: Callable[..., str] = plug_in.load()
        return writer
    raise EnvironmentNotReadyError(
        ProblemWithFix(
            f"--to {to} needs the package compilegate-trackers",
            fix=f"pip install 'compilegate-trackers[{to}]'",
        )
    )


def _decided(name: str | None, cloud: Cloud) -> tuple[Trial, int]:
    """The newest decided trial that the name stands for, and when it was decided.

    Raises InvalidInputError for none.
    """
    workloads = cloud.overview.workloads()
    workload, trial = name, None
    if name is not None and name not in workloads:
        workload, _, trial = name.rpartition("-")
    newest = newest_decision([one for one in workloads if workload in (None, one)], trial, cloud)
    if newest is None:
        raise InvalidInputError(
            "is no trial with a decision" if name else "there is no decision yet", field="TRIAL",
            value=name, fix=f"`{cloud.command('status')}` lists the trials",
        )  # fmt: skip
    return newest[0], newest[1].at
