"""Shows many checks at the terminal: a line each, and what they add up to."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from compilegate.cli.check.totals import INELIGIBLE, Ranked, Totals, first_stop
from compilegate.cli.common.output import TONE_STYLES, say, say_line
from compilegate.domain.formats import UNKNOWN, interval, money, plural
from compilegate.domain.words import VERDICTS, verdict_label

WIDTH = 80
_VERDICT, _NAME = 12, 24
_COUNTED = ("eligible", "benchmark", "ineligible")


def line(document: Mapping[str, Any]) -> str:
    """``not eligible  bert-docs  why``, within 80 columns where the name allows."""
    verdict, name = str(document["verdict"]), str(document["workload"])
    label = verdict_label(verdict)
    words = label.text.lower()
    text = _fitted(f"{words:<{_VERDICT}}  {name:<{_NAME}}  ", _note(document))
    if sys.stdout.isatty():
        return typer.style(words, fg=TONE_STYLES[label.tone]) + text.removeprefix(words)
    return text


def _note(document: Mapping[str, Any]) -> str:
    if document["verdict"] == INELIGIBLE:
        return str(first_stop(document)["message"])
    saving = (document.get("economics") or {}).get("plausible_annual_saving_usd")
    shown = interval(saving, money)
    return "" if shown == UNKNOWN else f"{shown} a year"


def show_totals(totals: Totals) -> None:
    """Verdicts and dollars, then the few that matter most."""
    checked = sum(totals.verdicts.values())
    say()
    say(f"{plural(checked, 'workload')}: {_counts(totals)}", "bold")
    if not checked:
        return
    unpriced = f" ({totals.unpriced:,} without a known price)" if totals.unpriced else ""
    saving = f"{money(totals.saving_low)} to {money(totals.saving_high)}"
    say(f"{'training costs per year':<28} {money(totals.training_usd)}{unpriced}", indent=2)
    say(f"{'plausible saving per year':<28} {saving}", indent=2)
    if totals.stopped_by:
        codes = ", ".join(f"{code} {count:,}" for code, count in totals.stopped_by.most_common())
        say(f"{'stopped first by':<28} {codes}", indent=2, hang=29)
    _few("Most to gain, at most per year", totals.most_to_gain)
    _few("Dearest that no compiler helps, training costs per year", totals.dearest_stopped)


def _counts(totals: Totals) -> str:
    words = [
        f"{totals.verdicts[verdict]:,} {verdict_label(verdict).text.lower()}"
        for verdict in _COUNTED
        if totals.verdicts[verdict]
    ]
    wrong = [f"{plural(totals.errors, 'file')} wrong"] if totals.errors else []
    return ", ".join(words + wrong) or "nothing could be checked"


def _few(title: str, ranked: Sequence[Ranked]) -> None:
    if not ranked:
        return
    say()
    say(title, "bold", indent=2)
    for ranking in sorted(ranked, reverse=True):
        note = VERDICTS[ranking.note].text.lower() if ranking.note in VERDICTS else ranking.note
        say_line(_fitted(f"    {ranking.workload:<{_NAME}}  {money(ranking.usd):>12}  ", note))


def _fitted(left: str, note: str) -> str:
    room = WIDTH - len(left)
    return (left + (note if len(note) <= room else f"{note[: room - 1]}…")).rstrip()
