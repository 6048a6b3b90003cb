"""Shows an eligibility at the terminal: verdict, money, reasons by candidate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compilegate.cli.common.figures import saving_between
from compilegate.cli.common.template import show
from compilegate.domain.eligibility import (
    CandidateEligibility,
    Eligibility,
    EligibilityVerdict,
    blocking,
)
from compilegate.domain.notes import Note, said
from compilegate.domain.reasons import Reason, Severity

Wording = tuple[str, Severity | None, str, str]


def show_eligibility(eligibility: Eligibility, notes: Sequence[Note] = ()) -> None:
    """The verdict, the money, what holds for all candidates, then each of them.

    A reason that every candidate has is shown once, and candidates with the same answer are shown
    together. ``notes`` are remarks about the job.
    """
    shared = _shared([candidate.reasons for candidate in eligibility.candidates])
    footnotes = {_wording(reason): "" for reason in shared}
    show(
        "check", eligibility.to_dict(),
        eligibility=eligibility, figures=eligibility.economics, notes=said(notes),
        against="; ".join(said(notes, "against")), saving_between=saving_between, shared=shared,
        groups=[_group(group, footnotes) for group in _groups(eligibility.candidates)],
    )  # fmt: skip


def _group(group: Sequence[CandidateEligibility], footnotes: dict[Wording, str]) -> dict[str, Any]:
    """Candidates with the same answer; reasons of an earlier candidate are only named."""
    first, names = group[0], [one.candidate.name for one in group]
    fresh = [reason for reason in first.reasons if _wording(reason) not in footnotes]
    again: dict[str, list[str]] = {}
    for reason in first.reasons:
        earlier = footnotes.setdefault(_wording(reason), names[0])
        if earlier not in ("", names[0]):
            stops = "blocks: " if reason.severity is Severity.BLOCK else ""
            again.setdefault(earlier, []).append(f"{stops}{reason.code}")
    tried = first.verdict is not EligibilityVerdict.INELIGIBLE
    return {
        "title": f"{', '.join(names)} ({first.compiler})",
        "verdict": first.verdict,
        "aside": _aside(first),
        "whys": [one.why for one in group if one.why and tried],
        "fresh": fresh,
        "again": again,
    }


def _aside(candidate: CandidateEligibility) -> str:
    blocks = {one.code for one in blocking(candidate.reasons)}
    return "not worth a benchmark" if blocks == {"saving_below_trial_cost"} else ""


def _wording(reason: Reason) -> Wording:
    """A reason without its place in the file."""
    return reason.code, reason.severity, reason.message, reason.fix


def _shared(reasons: Sequence[Sequence[Reason]]) -> list[Reason]:
    """Reasons that every one of several candidates has, in the order of the first one."""
    if len(reasons) < 2:
        return []
    others = [{_wording(reason) for reason in words} for words in reasons[1:]]
    return [one for one in reasons[0] if all(_wording(one) in words for words in others)]


def _groups(candidates: Sequence[CandidateEligibility]) -> list[list[CandidateEligibility]]:
    """Candidates with the same verdict, compiler and reasons, in their first's order."""
    groups: dict[object, list[CandidateEligibility]] = {}
    for candidate in candidates:
        words = tuple(_wording(reason) for reason in candidate.reasons)
        key = (candidate.compiler, candidate.verdict, words)
        groups.setdefault(key, []).append(candidate)
    return list(groups.values())
