"""``compilegate demo``: three real workloads through the whole loop on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.common.cloud import StartedCloud
from compilegate.cli.common.error_handling import FAILURE, STOPPED, session
from compilegate.cli.common.options import REPORTS, JsonOption, ReportsOption
from compilegate.cli.common.outcome import Outcome, read_outcome
from compilegate.cli.common.output import console, emit_json, say
from compilegate.cli.common.project import REPOSITORY
from compilegate.cli.common.providers import Providers
from compilegate.cli.demo.data import preparing_data
from compilegate.cli.demo.screen import Times, measure_times, show_demo, verdict_line
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

    Starts the embedded cloud, deploys the app, trains for some minutes, shows each verdict as it
    is reached and prints one table.
    Exit code 0 when every trial reached a verdict, whatever the verdict is.
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
            f"{REPOSITORY / 'workloads' / DEMO_FILES} matches nothing. Fix: run the demo from a "
            "complete checkout, or name files with --workloads."
        )
    _print(progress, "Preparing the data, starting the embedded cloud, deploying the app …")
    with preparing_data(REPOSITORY) as data, providers.started_local(keep=keep) as started:
        data.wait()
        files = read_workloads(paths)
        setup_seconds = time.monotonic() - began
        _show_start(progress, started, files, setup_seconds)
        if not workloads:
            _print(progress, EXPECTED)
        views, outcomes = _evaluate(files, started, out, progress)
        simulated = started.cloud.services.settings.simulated
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


def _print(progress: Console, text: str) -> None:
    progress.print(text, markup=False)


def _show_start(
    progress: Console, started: StartedCloud, files: list[WorkloadFile], seconds: float
) -> None:
    names = ", ".join(file.workload.name for file in files)
    trials = "Three trials at once" if len(files) == 3 else "Trials"
    _print(progress, f"Ready after {seconds:.0f} s. {trials}: {names}.")
    if started.cloud.services.settings.simulated:
        _print(progress, f"{started.cloud.services.settings.simulated}")
    _print(progress, "Logs of every part: compilegate local logs (in another terminal)")
