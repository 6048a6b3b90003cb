"""What ``train`` says of a production run: its arm and why, figures, and the flag after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.cli.common.output import say, say_line
from compilegate.cli.trials.run_view import RunView
from compilegate.domain.formats import UNKNOWN, clock, money, significant
from compilegate.domain.production.next_arm import FlagReading
from compilegate.domain.records.runs import BegunRun, ProductionRun
from compilegate.domain.words import run_reason


def show_run(view: RunView, reading: FlagReading) -> None:
    """The end of a run, and what production is told after it."""
    say()
    if view.begun is not None:
        say(f"{view.trial.workload}: {chosen(view.begun)}", style="bold")
    for run in view.runs:
        _show_attempt(run)
    if not view.runs:
        reason = view.state.cause or view.state.error or "no attempt was recorded"
        say(f"{view.stage}: {reason}", indent=2)
    if view.review is not None:
        say(f"{'judge':<10} {view.review.verdict or 'nothing to judge'}", indent=2)
    say(f"{'flag':<10} {flag_words(reading)}", indent=2)


def chosen(begun: BegunRun) -> str:
    """Which arm, and why."""
    flag_message = f": {begun.flag_told}" if begun.flag_told else ""
    return f"run {begun.run} trained {begun.arm} ({run_reason(begun.why)}{flag_message})"


def flag_words(reading: FlagReading) -> str:
    """On or off, in which state, or why it is not followed."""
    if reading.explanation is not None:
        return reading.explanation
    word = "on" if reading.flag.enabled else "off"
    return word if reading.flag.state == word else f"{word} ({reading.flag.state})"


def _show_attempt(run: ProductionRun) -> None:
    say(f"{run.job}: {run.arm}, {run.status}, {run_reason(run.why)}", indent=2)
    if run.reason:
        say(run.reason, indent=4)
    for name, value in figures(run).items():
        say_line(f"    {name:<10} {value}")


def figures(run: ProductionRun) -> Mapping[str, str]:
    """Metric, wall clock and price of one attempt."""
    result: Mapping[str, Any] = run.result
    seconds = result.get("wall_seconds") or run.ended_at - run.started_at
    metric = result.get("metric")
    return {
        "metric": UNKNOWN if metric is None else significant(metric, 4),
        "wall clock": clock(seconds),
        "cost": UNKNOWN if run.usd is None else money(run.usd),
    }
