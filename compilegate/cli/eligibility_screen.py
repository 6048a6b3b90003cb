"""Shows an eligibility at the terminal: verdicts, reasons, money."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.cli.output import reason_lines, say, say_verdict
from compilegate.report.formats import UNKNOWN, interval, money, shown, significant


def show_eligibility(document: Mapping[str, Any]) -> None:
    """The workload's verdict and reasons, then each candidate's, then the money."""
    say_verdict(document["workload"], document["verdict"])
    reason_lines(document["reasons"])
    for candidate in document["candidates"]:
        name = f"{candidate['name']} ({candidate['compiler']})"
        say_verdict(name, candidate["verdict"], indent=2)
        reason_lines(candidate["reasons"], indent=4)
    _show_economics(document.get("economics") or {})


def _show_economics(figures: Mapping[str, Any]) -> None:
    rows = (
        ("training costs per year", shown(figures.get("annual_training_usd"), money)),
        ("plausible saving per year", interval(figures.get("plausible_annual_saving_usd"), money)),
        ("finding out costs about", shown(figures.get("trial_usd"), money)),
        ("a run pays for compiling from", _with(figures.get("break_even_run_minutes"), "min")),
        ("the trial is paid back after", _with(figures.get("payback_days"), "days")),
    )
    for name, value in rows:
        if value == UNKNOWN:
            continue
        say(f"{name:<30} {value}", indent=2)
    if figures.get("prices_as_of"):
        say(f"Prices as of {figures['prices_as_of']}.", indent=2)
    elif figures.get("price_source"):
        say(f"Price: {figures['price_source']}.", indent=2, hang=2)


def _with(value: Any, unit: str) -> str:
    return shown(value, lambda found: f"{significant(found)} {unit}")
