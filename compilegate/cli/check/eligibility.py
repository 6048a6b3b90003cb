"""Shows an eligibility at the terminal: verdict, money, reasons by candidate."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.cli.common.figures import saving_between
from compilegate.cli.common.output import reason_lines, say, say_rows, say_verdict
from compilegate.domain.arithmetic import ratio
from compilegate.domain.eligibility import (
    CandidateEligibility,
    Economics,
    Eligibility,
    EligibilityVerdict,
    blocking,
)
from compilegate.domain.formats import UNKNOWN, duration, money, plural, shown
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.script_compiles import AGAINST, ScriptCompiles

Wording = tuple[str, Severity | None, str, str]


def show_eligibility(
    eligibility: Eligibility, script_compiles: ScriptCompiles | None = None
) -> None:
    """The verdict, the money, what holds for all candidates, then each of them.

    A reason that every candidate has is shown once, and candidates with the same answer are shown
    together. ``script_compiles`` is where the job's own script compiles.
    """
    say_verdict(eligibility.workload, eligibility.verdict)
    _show_economics(eligibility, compiles=script_compiles is not None)
    if script_compiles:
        say(script_compiles.text, indent=2)
    reason_lines(eligibility.reasons, indent=2)
    shared = _shared([candidate.reasons for candidate in eligibility.candidates])
    if shared:
        say()
        say("every candidate:", "bold", indent=2)
        reason_lines(shared, indent=2)
    footnotes = {_wording(reason): "" for reason in shared}
    for group in _groups(eligibility.candidates):
        say()
        _show_group(group, footnotes)
    for name, why in eligibility.left_out:
        say()
        say(f"{name}: left out, {why}.", indent=2, hang=2)


def _show_group(group: Sequence[CandidateEligibility], footnotes: dict[Wording, str]) -> None:
    """Candidates with the same answer; reasons of an earlier candidate are only named."""
    first, names = group[0], [one.candidate.name for one in group]
    title = f"{', '.join(names)} ({first.compiler})"
    say_verdict(title, first.verdict, _aside(first), indent=2)
    for candidate in group:
        if candidate.why and candidate.verdict is not EligibilityVerdict.INELIGIBLE:
            say(f"{candidate.why}.", indent=4)
    fresh = [reason for reason in first.reasons if _wording(reason) not in footnotes]
    reason_lines(fresh, indent=2)
    again: dict[str, list[str]] = {}
    for reason in first.reasons:
        earlier = footnotes.setdefault(_wording(reason), names[0])
        if earlier not in ("", names[0]):
            stops = "blocks: " if reason.severity is Severity.BLOCK else ""
            again.setdefault(earlier, []).append(f"{stops}{reason.code}")
    for earlier, codes in again.items():
        say(f"- as for {earlier}: {', '.join(dict.fromkeys(codes))}.", indent=2, hang=2)


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


def _show_economics(eligibility: Eligibility, *, compiles: bool) -> None:
    """The money; what a trial costs and could save only where there would be one."""
    figures = eligibility.economics
    tried = eligibility.verdict is not EligibilityVerdict.INELIGIBLE
    rows = [
        ("training costs per year", shown(figures.annual_training_usd, money)),
        ("a compiler could save", _saving(figures, compiles=compiles) if tried else UNKNOWN),
        ("a trial costs about", _trial(figures) if tried else UNKNOWN),
        ("a run pays off from", _break_even(figures)),
        ("Amdahl's law allows", shown(figures.largest_speedup, ratio)),
        ("prices", _prices(figures)),
    ]
    say_rows([row for row in rows if row[1] != UNKNOWN])


def _saving(figures: Economics, *, compiles: bool) -> str:
    saving = figures.plausible_annual_saving_usd
    if saving is None:
        return UNKNOWN
    return f"{saving_between(saving)} per year{f', {AGAINST}' if compiles else ''}"


def _trial(figures: Economics) -> str:
    cost, days = shown(figures.trial_usd, money), figures.payback_days
    if cost == UNKNOWN or days is None:
        return cost
    after = duration(days * 86400) if days < 1 else plural(days, "day")
    # Not the saving of the row above, which is at the largest plausible speed-up.
    speedup = figures.payback_speedup
    at = "" if speedup is None else f" at {ratio(speedup)}"
    return f"{cost}, paid back after {after}{at}"


def _break_even(figures: Economics) -> str:
    broken, paid = figures.break_even, figures.overhead
    if broken is None or paid is None:
        return UNKNOWN
    how = "measured" if paid.measured else "assumed"
    warm, cold = f"{paid.warm_seconds:g}", f"{paid.cold_seconds:g} s"
    span = cold if cold == f"{warm} s" else f"{warm} to {cold}"
    seconds = broken.sure_seconds
    start = f"{duration(seconds)} on" if seconds else "the first minute"
    return f"{start} at best (compiling: {span}, {how})"


def _prices(figures: Economics) -> str:
    source = (figures.price_source or UNKNOWN).partition(":")[0]
    priced = f"as of {figures.prices_as_of}" if figures.prices_as_of else source
    of, here = figures.prices_region, figures.region
    return priced if of in (None, here) else f"{priced}, of {of}; the job's region is {here}"
