"""``compilegate demo``: three real workloads through the whole loop on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.common.cloud import StartedCloud
from compilegate.cli.common.error_handling import FAILURE, STOPPED
from compilegate.cli.common.outcome import Outcome, read_outcome
from compilegate.cli.common.output import console, emit_json, say
from compilegate.cli.common.project import REPOSITORY
from compilegate.cli.common.session import (
    REPORTS,
    JsonOption,
    Providers,
    ReportsOption,
    session,
)
from compilegate.cli.demo.screen import Times, measure_times, show_demo, verdict_line
from compilegate.cli.demo.start import demo_cloud
from compilegate.cli.trials.start import StartedTrial, follow, read_workloads, start, stop
from compilegate.cli.trials.view import TrialView
from compilegate.domain.errors import EnvironmentNotReadyError

DEMO_FILES = "demo-*.yaml"
EXPECTED = (
    "Expected on two free cores: a verdict at once, the next within a minute, the last within four."
)


def demo(
    ctx: typer.Context,
    *,
    workloads: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Another workload file; repeatable."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the embedded cloud running afterwards.")
    ] = False,
    out: ReportsOption = REPORTS,
    as_json: JsonOption = False,
) -> None:
    """Run three real workloads through the whole loop on this machine.

    Needs no AWS account, no Docker and no GPU.

    \b
    compilegate demo
    compilegate demo --keep        then: compilegate status --local
    compilegate demo --workloads workloads/my-job.yaml

    Starts the embedded cloud, deploys the app, trains for a few minutes, shows each verdict as it
    is reached and prints one table.

    Exit code 0 when every trial reached a verdict, whatever the verdict is; otherwise 1.
    """
    progress = console(stderr=as_json)
    outcomes, times, simulated = _run(
        session(ctx).providers, workloads, out, keep=keep, progress=progress
    )
    if as_json:
        documents = [outcome.to_dict() for outcome in outcomes]
        emit_json({"outcomes": documents, "seconds": times.to_dict(), "simulated": simulated})
    else:
        show_demo(outcomes, times, simulated)
        if keep:
            say("The local cloud keeps running; stop it with: compilegate local down")
    if any(outcome.decision is None for outcome in outcomes):
        raise typer.Exit(FAILURE)


def _run(
    providers: Providers, workloads: list[Path] | None, out: Path, *, keep: bool, progress: Console
) -> tuple[list[Outcome], Times, str | None]:
    began = time.monotonic()
    paths = workloads or sorted((REPOSITORY / "workloads").glob(DEMO_FILES))
    if not paths:
        raise EnvironmentNotReadyError(
            f"{REPOSITORY / 'workloads' / DEMO_FILES} matches no file. Fix: run the demo from a "
            "complete checkout, or name files with --workloads."
        )
    with demo_cloud(providers, progress, keep=keep) as started:
        files = read_workloads(paths)
        setup_seconds = time.monotonic() - began
        simulated = started.cloud.services.settings.simulated
        names = ", ".join(file.workload.name for file in files)
        progress.print(f"Ready after {setup_seconds:.0f} s. Trials, all at once: {names}.")
        if simulated:
            progress.print(simulated)
        progress.print("Logs of every part: compilegate local logs (in another terminal)")
        if not workloads:
            progress.print(EXPECTED)
        views, outcomes = _evaluate(files, started, out, progress)
    times = measure_times(
        views,
        setup=setup_seconds - started.deploy_seconds,
        deploy=started.deploy_seconds,
        total=time.monotonic() - began,
    )
    return outcomes, times, simulated


def _evaluate(
    files: list[WorkloadFile], started_cloud: StartedCloud, out: Path, progress: Console
) -> tuple[list[TrialView], list[Outcome]]:
    """Run the trials and show each verdict as it is reached."""
    cloud, began = started_cloud.cloud, time.monotonic()
    started: list[StartedTrial] = []
    outcomes: dict[str, Outcome] = {}

    def show_verdict(view: TrialView) -> None:
        outcome = read_outcome(view.trial, cloud, view.state, out)
        outcomes[outcome.workload] = outcome
        progress.print(verdict_line(outcome, time.monotonic() - began))

    try:
        started = start(files, cloud)
        views = follow(started, cloud, progress, on_end=show_verdict)
    except KeyboardInterrupt:
        typer.echo("Stopping the trials and the embedded cloud …", err=True)
        if not started_cloud.started_now:
            stop(started, cloud)  # the cloud outlives this command, so its trials must be ended
        raise typer.Exit(STOPPED) from None
    return views, [outcomes[view.trial.workload] for view in views]
