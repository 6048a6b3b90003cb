"""``compilegate demo``: three real workloads through the whole loop on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.common.cloud import StartedCloud
from compilegate.cli.common.error_handling import FAILURE, STOPPED
from compilegate.cli.common.outcome import Outcome, decision_rows, read_outcome
from compilegate.cli.common.output import (
    console,
    emit_json,
    say,
    say_line,
    say_rows,
    say_verdict,
    verdict_text,
)
from compilegate.cli.common.session import REPORTS, JsonOption, Providers, ReportsOption, session
from compilegate.cli.demo.files import WORKLOADS, put_in_place
from compilegate.cli.demo.start import demo_cloud
from compilegate.cli.trials.start import StartedTrial, follow, read_workloads, start, stop
from compilegate.cli.trials.view import TrialView
from compilegate.domain.claims import verdict_label
from compilegate.domain.decision import Decision
from compilegate.domain.errors import EnvironmentNotReadyError, ProblemWithFix
from compilegate.domain.formats import clock, elapsed, percent

DEMO_FILES = "demo-*.yaml"
EXPECTED = (
    "Expected on two free cores: a verdict at once, the next within a minute, the last within four."
)

NAME_WIDTH, FIGURES_WIDTH = 18, 30  # "no fair comparison", "speed-up 1.31x (1.25 to 1.37)"
FRAME_WIDTH = 10
TABLE_WIDTH = NAME_WIDTH + FIGURES_WIDTH + FRAME_WIDTH + 14  # for `why`, a long word


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
    """Run three real workloads end to end on this machine.

    Needs no AWS account, no Docker and no GPU.

    \b
    compilegate demo
    compilegate demo --keep        then: compilegate status --local
    compilegate demo --workloads workloads/my-job.yaml

    Starts the embedded cloud, deploys the app, trains for a few minutes, shows each verdict as it
    is reached and prints one table.

    Exit code 0 when every trial reached a verdict, whatever it is, and has its report; otherwise 1.
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
    if any(outcome.exit_code == FAILURE for outcome in outcomes):
        raise typer.Exit(FAILURE)


def _run(
    providers: Providers, workloads: list[Path] | None, out: Path, *, keep: bool, progress: Console
) -> tuple[list[Outcome], Times, str | None]:
    began = time.monotonic()
    put_in_place()
    paths = workloads or sorted(WORKLOADS.glob(DEMO_FILES))
    if not paths:
        raise EnvironmentNotReadyError(
            ProblemWithFix(
                f"{WORKLOADS / DEMO_FILES} matches no file",
                fix="run the demo from a complete checkout, or name files with --workloads.",
            )
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


@dataclass(frozen=True)
class Times:
    """Where the demo's wall clock went, in seconds; ``overhead`` is all that is not training."""

    total: float
    setup: float
    deploy: float
    training: float
    loop: float

    @property
    def overhead(self) -> float:
        """Everything but training."""
        return self.total - self.training

    def to_dict(self) -> dict[str, float]:
        """Rounded, for programs."""
        return {
            name: round(value, 1)
            for name, value in {**asdict(self), "overhead": self.overhead}.items()
        }


def measure_times(
    views: Sequence[TrialView], *, setup: float, deploy: float, total: float
) -> Times:
    """Training is the time in which any job trained; the loop is the rest of the trials."""
    spans = sorted(
        (job.started_at, job.ended_at)
        for view in views
        for job in view.jobs
        if job.started_at is not None and job.ended_at is not None
    )
    training, reached = 0.0, 0.0
    for began, ended in spans:
        training += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return Times(
        total=total,
        setup=setup,
        deploy=deploy,
        training=training,
        loop=max(total - setup - deploy - training, 0.0),
    )


def verdict_line(outcome: Outcome, seconds: float) -> Text:
    """A verdict as it is reached, ``seconds`` after the trials began."""
    name = (outcome.workload, "bold")
    return Text.assemble(f"{clock(seconds):>6} ", name, f": {outcome.headline}")


def show_demo(outcomes: Sequence[Outcome], times: Times, simulated: str | None) -> None:
    """The table, the reports and the times."""
    say()
    if console().width < TABLE_WIDTH:
        for outcome in outcomes:
            say_verdict(outcome.workload, outcome.verdict)
            say(_why(outcome), indent=2)
            say_rows([] if outcome.decision is None else decision_rows(outcome.decision))
            say()
    else:
        console().print(demo_table(outcomes))
    say("Reports:")
    for outcome in outcomes:
        failed = "trial" if outcome.decision is None else "report"
        say_line(f"  {outcome.report or f'none: the {failed} of {outcome.workload} failed'}")
        for item in outcome.missing if outcome.report is None else ():
            say(item.message, indent=4)
    say()
    say(
        f"Took {elapsed(times.total)}: set-up {times.setup:.0f} s, deploy {times.deploy:.0f} s, "
        f"training {elapsed(times.training)}, the rest of the loop {times.loop:.0f} s. "
        f"Not training: {percent(times.overhead / times.total, 2)}."
    )
    if simulated:
        say(f"Simulated: {simulated} The verdicts are measured, and may differ on another machine.")


def demo_table(outcomes: Sequence[Outcome]) -> Table:
    """A row per workload: verdict, why, figures; fits 80 columns, needs ``TABLE_WIDTH``."""
    out = console()
    table = Table(box=box.ROUNDED if out.is_terminal else box.ASCII2, show_lines=True)
    table.add_column("workload, verdict", width=NAME_WIDTH, overflow="fold")
    table.add_column("why", width=out.width - NAME_WIDTH - FIGURES_WIDTH - FRAME_WIDTH)
    table.add_column("measured", width=FIGURES_WIDTH)
    for outcome in outcomes:
        name = Text.assemble((outcome.workload, "bold"), "\n", verdict_text(outcome.verdict))
        table.add_row(name, _why(outcome), _measured(outcome.decision))
    return table


def _why(outcome: Outcome) -> str:
    """The headline without the verdict that stands beside it."""
    label = f"{verdict_label(outcome.verdict).text}: "
    why = outcome.headline.removeprefix(label)
    return why[:1].upper() + why[1:]


def _measured(decision: Decision | None) -> str:
    if decision is None:
        return "nothing: the flag is unchanged"
    return "\n".join(f"{name} {value}" for name, value in decision_rows(decision))
