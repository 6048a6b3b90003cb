"""What ``demo-production`` prints: a line for each run, the notification, where the history is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from compilegate.cli.common.figures import quality_words, speedup_words
from compilegate.cli.common.outcome import Outcome
from compilegate.cli.common.output import say, say_line
from compilegate.cli.demo.scenario import NightlyRun, ScenarioResult
from compilegate.cli.train import flag_words
from compilegate.domain.formats import UNKNOWN, clock, fixed
from compilegate.domain.production.next_arm import FlagReading
from compilegate.domain.workload.model import BASELINE

# What the line says of a run beside its arm.
WHY = {"confirm": "checks alarm", "refresh": "refresh", "rerun": "again", "fallback": "elsewhere"}


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
            self._console.print(Text(f"  speed-up {speedup_words(decision)}"))
            self._console.print(Text(f"  quality {quality_words(decision)}"))


def run_line(run: NightlyRun) -> str:
    """Night, arm, quality, wall clock, and what the flag is after it."""
    begun, attempts = run.view.begun, run.view.runs
    arm = begun.arm if begun else UNKNOWN
    note = WHY.get(begun.why, "") if begun else ""
    result = attempts[0].result if attempts else {}
    metric, wall = result.get("metric"), result.get("wall_seconds")
    state = "ALARM" if run.alarmed else "faulty" if run.fault and arm != BASELINE else ""
    columns = (
        f"{run.number:>3} {_date(run.scheduled):<6}", f"{arm:<9}", f"{note:<12}",
        f"{UNKNOWN if metric is None else fixed(metric):>7}",
        f"{UNKNOWN if wall is None else clock(wall):>5}", f"{state:<6}",
        f"flag {flag_words(FlagReading(run.flag))}",
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
        for line in str(notification["message"]).strip().split("\n"):
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
    if result.failure is not None:
        say()
        say(
            f"The demo did not go as planned: {result.failure}. All figures are measured and may "
            "differ on a busy machine. Run it again.",
            style="red",
        )  # fmt: skip


def _date(iso: str) -> str:
    if not iso:
        return ""
    return f"{datetime.fromisoformat(iso).astimezone(UTC):%d %b}"
