"""What ``demo-production`` prints: a line a night, what was told to people, where the story is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from compilegate.cli.demo_production_nights import Month, Night
from compilegate.cli.figures import quality_words, speedup_words
from compilegate.cli.outcome import Outcome
from compilegate.cli.output import say, say_line
from compilegate.cli.screen import clock
from compilegate.cli.train_screen import flag_words
from compilegate.domain.production.next_arm import FlagReading
from compilegate.domain.workload.model import BASELINE
from compilegate.report.formats import UNKNOWN, fixed

# What the line says of a run beside its arm.
WHY = {"confirm": "checks alarm", "refresh": "refresh", "rerun": "again", "fallback": "elsewhere"}


class Lines:
    """Tells the month as it goes, on 80 columns."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def step(self, text: str) -> None:
        """What comes next."""
        self._console.print()
        self._console.print(Text(text, style="bold"))

    def night(self, night: Night) -> None:
        """A run has ended."""
        style = "red" if night.alarmed else ""
        self._console.print(Text(night_line(night), style=style), soft_wrap=True)

    def trial(self, outcome: Outcome) -> None:
        """The trial has ended."""
        decision = outcome.decision
        self._console.print(Text(f"  {outcome.headline}"))
        if decision is not None:
            self._console.print(Text(f"  speed-up {speedup_words(decision)}"))
            self._console.print(Text(f"  quality {quality_words(decision)}"))


def night_line(night: Night) -> str:
    """Night, arm, quality, wall clock, and what the flag is after it."""
    begun, runs = night.view.begun, night.view.runs
    arm = begun.arm if begun else UNKNOWN
    note = WHY.get(begun.why, "") if begun else ""
    result = runs[0].result if runs else {}
    metric, wall = result.get("metric"), result.get("wall_seconds")
    state = "ALARM" if night.alarmed else "faulty" if night.fault and arm != BASELINE else ""
    columns = (
        f"{night.number:>3} {_date(night.at):<6}", f"{arm:<9}", f"{note:<12}",
        f"{UNKNOWN if metric is None else fixed(metric):>7}",
        f"{UNKNOWN if wall is None else clock(wall):>5}", f"{state:<6}",
        f"flag {flag_words(FlagReading(night.flag))}",
    )  # fmt: skip
    return "  ".join(columns).rstrip()


def show_end(
    month: Month, message: dict[str, Any] | None, story: Path, simulated: list[str]
) -> None:
    """The notification, the story, and what of it all was not the real thing."""
    if message is not None:
        say()
        say("What the owner was told:", style="bold")
        say(str(message["subject"]), indent=2)
        for line in str(message["message"]).strip().split("\n"):
            say(line, indent=2)
    say()
    say("The story:", style="bold")
    say_line(f"  {story}")
    if month.outcome is not None and month.outcome.report is not None:
        say("The trial's report:", style="bold")
        say_line(f"  {month.outcome.report}")
    say()
    for text in simulated:
        say(f"Simulated: {text}")
    if month.wrong is not None:
        say()
        say(
            f"It did not go as this demo tells it: {month.wrong}. All figures are measured; on a "
            "busy machine they may come out otherwise. Run it again.",
            style="red",
        )  # fmt: skip


def _date(iso: str) -> str:
    if not iso:
        return ""
    return f"{datetime.fromisoformat(iso).astimezone(UTC):%d %b}"
