"""``compilegate demo``: three real workloads through the whole loop on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.cloud import StartedCloud
from compilegate.cli.demo_data import preparing_data
from compilegate.cli.demo_table import Times, measure_times, show_demo
from compilegate.cli.doors import Doors
from compilegate.cli.options import REPORTS, JsonOption, ReportsOption
from compilegate.cli.outcome import Outcome, read_outcome
from compilegate.cli.output import console, emit_json, say
from compilegate.cli.project import REPOSITORY
from compilegate.cli.shell import FAILURE, STOPPED, session
from compilegate.cli.trial_view import TrialView
from compilegate.cli.trials import StartedTrial, follow, read_workloads, start, stop
from compilegate.domain.errors import EnvironmentNotReadyError

DEMO_FILES = "demo-*.yaml"


def demo(
    ctx: typer.Context,
    *,
    workloads: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Other workload files; may be given again."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the embedded cloud running afterwards.")
    ] = False,
    out: ReportsOption = REPORTS,
    as_json: JsonOption = False,
) -> None:
    """Run three real workloads through the loop on this machine.

    No AWS account, no Docker, no GPU.

    \b
    compilegate demo
    compilegate demo --keep        then: compilegate status --local
    compilegate demo --workloads workloads/my-job.yaml

    Starts the embedded cloud, deploys the app, trains for some minutes and prints one table.
    Exit code 0 when every trial reached a verdict, whatever the verdict is.
    """
    progress = console(stderr=as_json)
    outcomes, times, simulated = _run(
        session(ctx).doors, workloads, out, keep=keep, progress=progress
    )
    if as_json:
        documents = [outcome.to_dict() for outcome in outcomes]
        emit_json({"outcomes": documents, "seconds": times.to_dict(), "simulated": simulated})
    else:
        show_demo(outcomes, times, simulated)
        if keep:
            say("The local cloud goes on; end it with: compilegate local down")
    if any(outcome.decision is None for outcome in outcomes):
        raise typer.Exit(FAILURE)


def _run(
    doors: Doors, workloads: list[Path] | None, out: Path, *, keep: bool, progress: Console
) -> tuple[list[Outcome], Times, str | None]:
    began = time.monotonic()
    paths = workloads or sorted((REPOSITORY / "workloads").glob(DEMO_FILES))
    if not paths:
        raise EnvironmentNotReadyError(
            f"{REPOSITORY / 'workloads' / DEMO_FILES} matches nothing. Fix: run the demo from a "
            "complete checkout, or name files with --workloads."
        )
    _tell(progress, "Preparing the data, starting the embedded cloud, deploying the app …")
    with preparing_data(REPOSITORY) as data, doors.started_local(keep=keep) as started:
        data.wait()
        files = read_workloads(paths)
        setup_seconds = time.monotonic() - began
        _tell_started(progress, started, files, setup_seconds)
        views = _evaluate(files, started, progress)
        outcomes = [read_outcome(view.trial, started.cloud, view.state, out) for view in views]
        simulated = started.cloud.services.settings.simulated
    total = time.monotonic() - began
    times = measure_times(
        views, setup=setup_seconds - started.deploy_seconds, deploy=started.deploy_seconds,
        total=total,
    )  # fmt: skip
    return outcomes, times, simulated


def _evaluate(
    files: list[WorkloadFile], started_cloud: StartedCloud, progress: Console
) -> list[TrialView]:
    cloud = started_cloud.cloud
    started: list[StartedTrial] = []
    try:
        started = start(files, cloud)
        return follow(started, cloud, progress)
    except KeyboardInterrupt:
        typer.echo("Stopping the trials and the embedded cloud …", err=True)
        if not started_cloud.started_now:
            stop(started, cloud)  # the cloud outlives this command, so its trials must be ended
        raise typer.Exit(STOPPED) from None


def _tell(progress: Console, text: str) -> None:
    progress.print(text, markup=False)


def _tell_started(
    progress: Console, started: StartedCloud, files: list[WorkloadFile], seconds: float
) -> None:
    names = ", ".join(file.workload.name for file in files)
    _tell(progress, f"Ready after {seconds:.0f} s. Three trials at once: {names}."
          if len(files) == 3 else f"Ready after {seconds:.0f} s. Trials: {names}.")  # fmt: skip
    if started.cloud.services.settings.simulated:
        _tell(progress, f"{started.cloud.services.settings.simulated}")
    _tell(progress, "Logs of every part: compilegate local logs (in another terminal)")
