"""``compilegate report``, ``export`` and ``digest``: what trials and weeks came to."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.outcome import newest_decision, save_report
from compilegate.cli.common.session import (
    REPORTS,
    Invocation,
    ReportsOption,
    on_cloud,
    workload_names,
)
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError, NotFoundError
from compilegate.ports import Services
from compilegate.report.exports.junit import junit
from compilegate.report.exports.openmetrics import openmetrics
from compilegate.report.fleet import render_fleet
from compilegate.report.trial_report import read_trial_report
from compilegate.usecases.operations.weekly_summary import digests, fleet
from compilegate.usecases.production.announce_review import history_page, page_texts
from compilegate.usecases.records import Trial
from compilegate.usecases.trial.write_report import trial_records


@on_cloud
def report(
    invocation: Invocation,
    workload: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKLOAD",
            help="Default: that of the newest decision.",
            autocompletion=workload_names,
        ),
    ] = None,
    *,
    trial: Annotated[
        str | None, typer.Option("--trial", metavar="ID", help="Default: the newest trial.")
    ] = None,
    workload_history: Annotated[
        bool, typer.Option("--history", help="The workload's history instead of one trial.")
    ] = False,
    out: ReportsOption = REPORTS,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Save a trial's report and print its path.

    As HTML, Markdown and JSON. With --history, saves the workload's history instead: registration,
    trials, production runs, alarms, flag changes and money, as of now.

    \b
    compilegate report
    compilegate report bert-docs --open
    compilegate report demo-lm --trial 0mabc123 --local
    compilegate report bert-docs --history --open

    With --local and no local cloud running, from what trials left in this folder, else prints the
    path of a report saved before.
    """
    if workload_history and (workload is None or trial is not None):
        raise InvalidInputError(
            "requires one workload and excludes --trial", field="--history",
            fix="use: compilegate report WORKLOAD --history",
        )  # fmt: skip
    history = out / f"{workload}-story" / "story.html"
    try:
        cloud = invocation.open_records()
    except EnvironmentNotReadyError:
        path = history if workload_history else _saved(workload, trial, out)
        if not invocation.local or not path.is_file():
            raise
        typer.echo("The local cloud does not run; this report was saved before.", err=True)
    else:
        if workload_history:
            path = save_history(str(workload), cloud.services, out)
        else:
            workloads = [workload] if workload else cloud.overview.workloads()
            newest = newest_decision(workloads, trial, cloud)
            if newest is None:
                what = " ".join(part for part in (workload, trial and f"trial {trial}") if part)
                raise NotFoundError(
                    f"there is no decision{f' of {what}' if what else ''} yet",
                    fix="list the trials with `compilegate status`",
                )
            path = save_report(newest[0], cloud.services, out)
    if open_it and not webbrowser.open(path.resolve().as_uri()):
        raise EnvironmentNotReadyError("No browser could be opened", fix=f"open {path} yourself.")
    invocation.answer(page_files(path), "path", path=path)


def page_files(page: Path) -> dict[str, str]:
    """A saved page's files by format."""
    suffixes = {"html": ".html", "markdown": ".md", "json": ".json"}
    return {name: str(page.with_suffix(suffix)) for name, suffix in suffixes.items()}


def save_history(workload: str, services: Services, out: Path) -> Path:
    """Render the history as of now and save its files; raises NotFoundError without any."""
    page = out / f"{workload}-story" / "story.html"
    for extension, text in page_texts(history_page(workload, services)).items():
        write_whole(page.with_suffix(f".{extension}"), text.encode())
    return page


def _saved(workload: str | None, trial: str | None, out: Path) -> Path:
    """The newest report saved before, by its folder ``{workload}-{trial}``; else no file."""
    saved = {path: path.parent.name.rpartition("-") for path in out.glob("*/report.html")}
    asked_for = [
        path for path, (name, _, own) in saved.items()
        if workload in (None, name) and trial in (None, own)
    ]  # fmt: skip
    return max(asked_for, key=lambda path: saved[path][2], default=Path())


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
        elif not invocation.as_json:
            typer.echo(text, nl=False)
            return
        document = {"file": None if out is None else str(out), "text": text}
        invocation.answer(document, "path", path=out)
        return
    from compilegate.report.exports.arm_runs import arm_runs  # noqa: PLC0415 - with the tracker

    runs = arm_runs(report, trial=trial.trial, at=at)
    if not runs:
        raise NotFoundError(
            f"trial {trial.trial} of {trial.workload} measured nothing, so there is no run to "
            "export",
            fix="use --to junit, which shows the reasons",
        )
    # What writes runs to a tracker is a plug-in's function (distributions/trackers).
    plug_in = next(iter(entry_points(group=TRACKERS, name=to)), None)
    if plug_in is None:
        raise EnvironmentNotReadyError(
            f"--to {to} needs the package compilegate-trackers",
            fix=f"pip install 'compilegate-trackers[{to}]'",
        )
    where = {"to": plug_in.load()(runs, out), "runs": [run.name for run in runs]}
    invocation.answer(where, "export")


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


@on_cloud
def digest(
    invocation: Invocation,
    *,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Only this owner's workloads.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Save all workloads as one page and print its path."
        ),
    ] = None,
) -> None:
    """Show every owner's weekly summary of the last 7 days.

    \b
    compilegate digest
    compilegate digest --owner ml-platform --json
    compilegate digest --html fleet.html

    With --html, saves a page instead: what was saved, how each workload stands, what to do. With
    --json as well, prints the path as JSON.
    """
    cloud = invocation.open_cloud()
    if html is not None:
        write_whole(html, render_fleet(fleet(cloud.services, owner=owner)).encode())
        invocation.answer({"html": str(html)}, "path", path=html)
        return
    sent = [one.notification for one in digests(cloud.services, owner=owner)]
    messages = [one.message.splitlines() for one in sent]
    invocation.answer([one.body() for one in sent], "digest", messages=messages)
