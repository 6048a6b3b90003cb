"""``compilegate check``: could a compiler apply and pay at all?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from compilegate.cli import project
from compilegate.cli.options import JsonOption, WorkloadFiles
from compilegate.cli.outcome import worst_exit_code
from compilegate.cli.output import emit_json, one_or_many, reason_lines, say, say_verdict
from compilegate.cli.trials import read_workloads
from compilegate.domain.eligibility import check_eligibility
from compilegate.facts import load_facts
from compilegate.report.formats import UNKNOWN, interval, money, shown, significant

EXIT_CODES = {"eligible": 0, "ineligible": 10, "benchmark": 11}


def check(files: WorkloadFiles, *, as_json: JsonOption = False) -> None:
    """Say whether a compiler could help, and why.

    Spends nothing and needs no account.

    \b
    compilegate check workloads/bert-docs.yaml
    compilegate check workloads/*.yaml --json

    Exit code 0 eligible, 10 ineligible, 11 benchmark; of several files the highest.
    """
    settings, facts = project.settings(), load_facts()
    documents = [
        check_eligibility(
            file.workload,
            facts,
            region=settings.region,
            price_overrides=settings.price_overrides,
        ).to_dict()
        for file in read_workloads(files)
    ]
    if as_json:
        emit_json(one_or_many(documents))
    else:
        for index, document in enumerate(documents):
            if index:
                say()
            show_eligibility(document)
    raise typer.Exit(worst_exit_code([EXIT_CODES[document["verdict"]] for document in documents]))


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
