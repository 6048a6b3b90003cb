"""``compilegate demo-production``: a month of production in minutes, a fault and its revert."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import FAILURE, STOPPED
from compilegate.cli.common.outcome import Outcome, decision_rows
from compilegate.cli.common.output import console, emit_json, moves, say, say_line
from compilegate.cli.common.session import REPORTS, JsonOption, Providers, ReportsOption, session
from compilegate.cli.demo.files import WORKLOADS, put_in_place
from compilegate.cli.demo.scenario import (
    FAULT,
    INTERVAL_MILLISECONDS,
    DemoScenario,
    NightlyRun,
    ScenarioResult,
)
from compilegate.cli.demo.start import demo_cloud
from compilegate.cli.flag import on_words
from compilegate.cli.report import page_files, save_history
from compilegate.cli.trials.start import read_workloads
from compilegate.domain.formats import UNKNOWN, clock, fixed
from compilegate.domain.production.registration import FAULT_VARIABLE
from compilegate.domain.production.savings import metric_of, wall_seconds_of
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.production.watch_production import watch_production

FILE = WORKLOADS / "nightly-lm.yaml"
STOP_CAUSE = "stopped with Ctrl-C"
# What the line says of a run beside its arm.
WHY = {"confirm": "checks alarm", "refresh": "refresh", "rerun": "again", "fallback": "elsewhere"}


def demo_production(
    ctx: typer.Context,
    *,
    workload: Annotated[
        Path, typer.Option(metavar="FILE", help="Another workload file.", show_default=False)
    ] = FILE,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the embedded cloud running afterwards.")
    ] = False,
    out: ReportsOption = REPORTS,
    as_json: JsonOption = False,
) -> None:
    """Run a month of production, with a fault, on this machine.

    A promotion, a fault and its revert. Needs no AWS account, no Docker and no GPU.

    \b
    compilegate demo-production
    compilegate demo-production --keep
    compilegate flag history lm-nightly --local

    Real jobs train one after another, each representing another night. A trial turns the compiler
    on, a fault is injected into the compiled arm, and production detects it and turns the compiler
    off by itself. Where the trial proves nothing, as on a busy machine, the demo says so and turns
    the flag on by hand.

    Exit code 0 when all of that happened; otherwise 1.
    """
    progress = console(stderr=as_json)
    ended = _run(session(ctx).providers, workload, out, keep=keep, progress=progress)
    if as_json:
        emit_json(ended.to_dict())
    else:
        show_end(ended.result, ended.notification, ended.history_page, ended.simulated)
        say(f"Took {ended.seconds / 60:.0f} min.")
        if keep:
            say("The local cloud keeps running; stop it with: compilegate local down")
    if ended.result.failure is not None:
        raise typer.Exit(FAILURE)


@dataclass(frozen=True)
class _Ended:
    """The scenario's result with what is shown of it."""

    result: ScenarioResult
    notification: dict[str, Any] | None
    history_page: Path
    simulated: list[str]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        outcome = self.result.outcome
        return {
            "went_as_told": self.result.failure is None,
            "wrong": self.result.failure,
            "trial": None if outcome is None else outcome.to_dict(),
            "turned_on_by_hand": self.result.by_hand,
            "nights": [run.to_dict() for run in self.result.runs],
            "notification": self.notification,
            "story": page_files(self.history_page),
            "simulated": self.simulated,
            "seconds": round(self.seconds, 1),
        }


def simulated(cloud: Cloud) -> list[str]:
    """What is simulated, a sentence each."""
    training = cloud.services.settings.simulated
    days = INTERVAL_MILLISECONDS // (24 * 3600 * 1000)
    return [
        *([training] if training else []),
        f"the clock. Runs start one after another and represent nights {days} days apart.",
        f"the fault. {FAULT_VARIABLE}={FAULT} lets the compiled arm train with a fifth of its "
        "learning rate; the training, its losses and every verdict are real.",
    ]


def _run(
    providers: Providers, workload: Path, out: Path, *, keep: bool, progress: Console
) -> _Ended:
    began = time.monotonic()
    reporter = ConsoleReporter(progress)
    put_in_place()
    with demo_cloud(providers, progress, keep=keep) as started:
        (file,) = read_workloads([workload])
        cloud = started.cloud
        reporter.phase(f"Ready after {time.monotonic() - began:.0f} s. Simulated here:")
        for text in simulated(cloud):
            progress.print(f"- {text}")
        # Without a terminal a line for each run is enough.
        live = progress if moves(progress) else Console(quiet=True)
        scenario = DemoScenario(file, cloud, reporter=reporter, live=live, reports=out)
        try:
            result = scenario.run()
        except KeyboardInterrupt:
            typer.echo("Stopping the demo and the embedded cloud …", err=True)
            if not started.started_now:  # the cloud outlives this command, its executions must end
                scenario.stop(STOP_CAUSE)
            raise typer.Exit(STOPPED) from None
        return _Ended(
            result,
            notification=_last_notification(scenario, cloud),
            history_page=save_history(scenario.workload, cloud.services, out),
            simulated=simulated(cloud),
            seconds=time.monotonic() - began,
        )


def _last_notification(scenario: DemoScenario, cloud: Cloud) -> dict[str, Any] | None:
    """The message of the flag's last change; the step that wrote it is idempotent."""
    changed = [
        run for run in scenario.result.runs if run.view.review and run.view.review.transition
    ]
    if not changed:
        return None
    event = {"workload": scenario.workload, "run": changed[-1].view.trial.trial}
    answer = watch_production(event, services=cloud.services)
    return {key: answer[key] for key in ("subject", "message") if key in answer} or None


class ConsoleReporter:
    """Shows the scenario as it runs, on 80 columns."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def phase(self, text: str) -> None:
        """A phase begins."""
        self._console.print()
        self._console.print(Text(text, style="bold"))

    def run_ended(self, run: NightlyRun) -> None:
        """A production run has ended."""
        style = "red" if run.alarmed else ""
        self._console.print(Text(run_line(run), style=style), soft_wrap=True)

    def trial_ended(self, outcome: Outcome) -> None:
        """The trial has ended."""
        decision = outcome.decision
        self._console.print(Text(f"  {outcome.headline}"))
        if decision is not None:
            for name, value in decision_rows(decision, outcome.applied):
                self._console.print(Text(f"  {name} {value}"))

    def turned_on_by_hand(self, command: str) -> None:
        """The demo goes on although the trial proved nothing."""
        self.phase("The trial did not prove the compiler, so it left the flag off.")
        self._console.print(
            "Its figures are measured, and vary more on a busy machine. To show production anyway, "
            "the demo now turns the flag on by hand, as a person may:"
        )
        self._console.print(Text(f"  {command}"), soft_wrap=True)


def run_line(run: NightlyRun) -> str:
    """Night, arm, quality, wall clock, and what the flag is after it."""
    begun, attempts = run.view.begun, run.view.runs
    arm = begun.arm if begun else UNKNOWN
    night = datetime.fromisoformat(run.scheduled).astimezone(UTC) if run.scheduled else None
    date = f"{night:%d %b}" if night else ""
    note = WHY.get(begun.why, "") if begun else ""
    metric = metric_of(attempts[0]) if attempts else None
    wall = wall_seconds_of(attempts[0]) if attempts else None
    state = "ALARM" if run.alarmed else "faulty" if run.fault and arm != BASELINE else ""
    columns = (
        f"{run.number:>3} {date:<6}", f"{arm:<9}", f"{note:<12}",
        f"{UNKNOWN if metric is None else fixed(metric):>7}",
        f"{UNKNOWN if wall is None else clock(wall):>5}", f"{state:<6}",
        f"flag {on_words(run.flag)}",
    )  # fmt: skip
    return "  ".join(columns).rstrip()


def show_end(
    result: ScenarioResult,
    notification: dict[str, Any] | None,
    history_page: Path,
    simulated: list[str],
) -> None:
    """The notification, the history, and what of it all was not the real thing."""
    if notification is not None:
        say()
        say("The owner was notified:", style="bold")
        say(str(notification["subject"]), indent=2)
        for line in str(notification["message"]).strip().splitlines():
            say(line, indent=2)
    say()
    say("The workload's history:", style="bold")
    say_line(f"  {history_page}")
    if result.outcome is not None and result.outcome.report is not None:
        say("The trial's report:", style="bold")
        say_line(f"  {result.outcome.report}")
    say()
    for text in simulated:
        say(f"Simulated: {text}")
    if result.by_hand and result.outcome is not None:
        say(f"Not proven here, and turned on by hand: {result.outcome.headline}")
    if result.failure is not None:
        say()
        say(
            f"The demo did not go as planned: {result.failure}. All figures are measured and may "
            "differ on a busy machine. Run it again.",
            style="red",
        )  # fmt: skip
