"""A line for each of many checks, and what they add up to: verdicts, dollars, the top few."""

from __future__ import annotations

import heapq
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import typer
from rich.console import Console

from compilegate.cli.common.figures import saving_between
from compilegate.cli.common.output import TONE_STYLES, console
from compilegate.cli.common.template import show
from compilegate.domain.claims import verdict_label
from compilegate.domain.economics import Range
from compilegate.domain.eligibility import Eligibility, EligibilityVerdict, blocking
from compilegate.domain.errors import InvalidInputError, printable
from compilegate.domain.formats import money, plural
from compilegate.domain.notes import Note, said

LISTED = 5
# A note in less room is below its line.
NARROWEST_NOTE = 20
_VERDICT, _NAME = 12, 24


@dataclass(frozen=True, order=True)
class Ranked:
    """A workload in a list of the top few; ``usd`` per year."""

    usd: float
    workload: str
    note: str = field(compare=False)


@dataclass
class Totals:
    """Sums over many checks in constant memory; USD per year.

    The saving is of workloads that may be tried; ``unpriced`` are those without a known price.
    ``against`` counts the workloads whose saving is not against the job as it runs today, by what
    it is against.
    """

    verdicts: Counter[EligibilityVerdict] = field(default_factory=Counter)
    errors: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    training_usd: float = 0.0
    unpriced: int = 0
    saving_low: float = 0.0
    saving_high: float = 0.0
    against: Counter[str] = field(default_factory=Counter)
    stopped_by: Counter[str] = field(default_factory=Counter)
    most_to_gain: list[Ranked] = field(default_factory=list)
    dearest_stopped: list[Ranked] = field(default_factory=list)

    def add_error(self, error: InvalidInputError) -> None:
        """Count a file that ``error`` kept from being checked."""
        self.errors += 1
        self.wrong.update({f"{printable(one.field)} {one.problem}" for one in error.each})

    def add(self, eligibility: Eligibility, notes: Sequence[Note] = ()) -> None:
        """Count one workload's answer, with the remarks about its job."""
        verdict, name = eligibility.verdict, eligibility.workload
        usd = eligibility.economics.annual_training_usd
        self.verdicts[verdict] += 1
        self.training_usd += usd or 0.0
        self.unpriced += usd is None
        if verdict is EligibilityVerdict.INELIGIBLE:
            code, why = first_stop(eligibility)
            self.stopped_by[code] += 1
            _keep(self.dearest_stopped, Ranked(usd or 0.0, name, why))
            return
        saving = eligibility.economics.plausible_annual_saving_usd
        if saving is not None:
            self.saving_low += saving.low
            self.saving_high += saving.high
            self.against.update(said(notes, "against"))
            _keep(self.most_to_gain, Ranked(saving.high, name, _word(verdict)))


def first_stop(eligibility: Eligibility) -> tuple[str, str]:
    """Code and message of what stops a workload: its own reasons come before its candidates'."""
    of_candidates = (candidate.reasons for candidate in eligibility.candidates)
    stops = blocking([*eligibility.reasons, *chain.from_iterable(of_candidates)])
    return (stops[0].code, stops[0].message) if stops else ("none", "no candidate is left")


def _keep(few: list[Ranked], entry: Ranked) -> None:
    if len(few) < LISTED:
        heapq.heappush(few, entry)
    else:
        heapq.heappushpop(few, entry)


def line(eligibility: Eligibility, out: Console, notes: Sequence[Note] = ()) -> str:
    """``not eligible  bert-docs  why``, in as many columns as there are; on few, two lines."""
    word, note = _word(eligibility.verdict), ""
    saving = eligibility.economics.plausible_annual_saving_usd
    if eligibility.verdict is EligibilityVerdict.INELIGIBLE:
        _, note = first_stop(eligibility)
    elif saving is not None:
        note = ", ".join([f"{saving_between(saving)} a year", *said(notes, "against")])
    text = _fitted(f"{word:<{_VERDICT}}  {eligibility.workload:<{_NAME}}  ", note, out.width)
    if out.is_terminal and not out.no_color:
        tone = verdict_label(eligibility.verdict).tone
        return typer.style(word, fg=TONE_STYLES[tone]) + text.removeprefix(word)
    return text


def _word(verdict: EligibilityVerdict) -> str:
    return verdict_label(verdict).text.lower()


def show_totals(totals: Totals) -> None:
    """Verdicts and dollars, then the top few."""
    counts = [
        f"{totals.verdicts[verdict]:,} {_word(verdict)}"
        for verdict in EligibilityVerdict
        if totals.verdicts[verdict]
    ]
    invalid = [f"{plural(totals.errors, 'file')} invalid"] if totals.errors else []
    wrong = [(text, files) for text, files in totals.wrong.most_common(LISTED) if files > 1]
    show(
        "check_totals", {"totals": totals},
        checked=sum(totals.verdicts.values()), counts=counts + invalid, wrong=wrong,
        saving=saving_between(Range(totals.saving_low, totals.saving_high)),
        top=[
            ("Largest savings, at most per year", _few(totals.most_to_gain)),
            ("Largest training costs without an eligible compiler, per year",
             _few(totals.dearest_stopped)),
        ],
    )  # fmt: skip


def _few(ranked: Sequence[Ranked]) -> list[list[str]]:
    """The lines of each, the first one first."""
    width = console().width
    return [
        _fitted(f"    {one.workload:<{_NAME}}  {money(one.usd):>12}  ", one.note, width).split("\n")
        for one in sorted(ranked, reverse=True)
    ]


def _fitted(left: str, note: str, width: int) -> str:
    """The note beside what is left of it, else below; cut at a word where it is too long."""
    room = width - len(left)
    if room < NARROWEST_NOTE and note:
        left, room = f"{' '.join(left.split())}\n    ", width - 4
    return (left + textwrap.shorten(note, room, placeholder="…")).rstrip()
