"""Shows an eligibility at the terminal: verdict, money, reasons by candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.cli.common.figures import saving_between
from compilegate.cli.common.output import reason_lines, say, say_rows, say_verdict
from compilegate.domain.arithmetic import ratio
from compilegate.domain.formats import UNKNOWN, duration, money, number, pair, plural, shown
from compilegate.domain.script_compiles import AGAINST, ScriptCompiles

Document = Mapping[str, Any]
Wording = tuple[str, ...]
INELIGIBLE = "ineligible"


def show_eligibility(document: Document) -> None:
    """The verdict, the money, what holds for all candidates, then each of them.

    A reason that every candidate has is shown once, and candidates with the same answer are shown
    together.
    """
    say_verdict(document["workload"], document["verdict"])
    _show_economics(document, tried=document["verdict"] != INELIGIBLE)
    compiles = ScriptCompiles.from_dict(document.get("script_compiles"))
    if compiles:
        say(compiles.text, indent=2)
    reason_lines(document["reasons"], indent=2)
    candidates = document["candidates"]
    shared = _shared([candidate["reasons"] for candidate in candidates])
    if shared:
        say()
        say("every candidate:", "bold", indent=2)
        reason_lines(shared, indent=2)
    footnotes = {_wording(reason): "" for reason in shared}
    for group in _groups(candidates):
        say()
        _show_group(group, footnotes)
    for left in document.get("left_out") or ():
        say()
        say(f"{left['name']}: left out, {left['why']}.", indent=2, hang=2)


def _show_group(group: Sequence[Document], footnotes: dict[Wording, str]) -> None:
    """Candidates with the same answer; reasons of an earlier candidate are only named."""
    first, name = group[0], ", ".join(candidate["name"] for candidate in group)
    say_verdict(f"{name} ({first['compiler']})", first["verdict"], _aside(first), indent=2)
    for candidate in group:
        if candidate.get("why") and candidate["verdict"] != INELIGIBLE:
            say(f"{candidate['why']}.", indent=4)
    fresh = [reason for reason in first["reasons"] if _wording(reason) not in footnotes]
    reason_lines(fresh, indent=2)
    again: dict[str, list[str]] = {}
    for reason in first["reasons"]:
        earlier = footnotes.setdefault(_wording(reason), first["name"])
        if earlier not in ("", first["name"]):
            stops = "blocks: " if reason["severity"] == "block" else ""
            again.setdefault(earlier, []).append(f"{stops}{reason['code']}")
    for earlier, codes in again.items():
        say(f"- as for {earlier}: {', '.join(dict.fromkeys(codes))}.", indent=2, hang=2)


def _aside(candidate: Document) -> str:
    blocks = {one["code"] for one in candidate["reasons"] if one["severity"] == "block"}
    return "not worth a benchmark" if blocks == {"saving_below_trial_cost"} else ""


def _wording(reason: Document) -> Wording:
    """A reason without its place in the file."""
    return tuple(str(reason[key]) for key in ("code", "severity", "message", "fix"))


def _shared(reasons: Sequence[Sequence[Document]]) -> list[Document]:
    """Reasons that every one of several candidates has, in the order of the first one."""
    if len(reasons) < 2:
        return []
    others = [{_wording(reason) for reason in words} for words in reasons[1:]]
    return [one for one in reasons[0] if all(_wording(one) in words for words in others)]


def _groups(candidates: Sequence[Document]) -> list[list[Document]]:
    """Candidates with the same verdict, compiler and reasons, in their first's order."""
    groups: dict[object, list[Document]] = {}
    for candidate in candidates:
        words = tuple(_wording(reason) for reason in candidate["reasons"])
        key = (candidate["compiler"], candidate["verdict"], words)
        groups.setdefault(key, []).append(candidate)
    return list(groups.values())


def _show_economics(document: Document, *, tried: bool) -> None:
    """The money; what a trial costs and could save only where there would be one."""
    figures = document.get("economics") or {}
    saving = _saving(figures) if tried else UNKNOWN
    if saving != UNKNOWN and document.get("script_compiles"):
        saving += f", {AGAINST}"
    rows = [
        ("training costs per year", shown(figures.get("annual_training_usd"), money)),
        ("a compiler could save", saving),
        ("a trial costs about", _trial(figures) if tried else UNKNOWN),
        ("a run pays off from", _break_even(figures)),
        ("Amdahl's law allows", shown(figures.get("largest_speedup"), ratio)),
        ("prices", _prices(figures)),
    ]
    say_rows([row for row in rows if row[1] != UNKNOWN])


def _saving(figures: Document) -> str:
    bounds = pair(figures.get("plausible_annual_saving_usd"))
    if bounds is None:
        return UNKNOWN
    return f"{saving_between(*bounds)} per year"


def _trial(figures: Document) -> str:
    cost, days = shown(figures.get("trial_usd"), money), number(figures.get("payback_days"))
    if cost == UNKNOWN or days is None:
        return cost
    return f"{cost}, paid back after {duration(days * 86400) if days < 1 else plural(days, 'day')}"


def _break_even(figures: Document) -> str:
    minutes, paid = number(figures.get("break_even_run_minutes")), figures.get("compile_seconds")
    if minutes is None or not paid:
        return UNKNOWN
    how = "measured" if paid["measured"] else "assumed"
    warm, cold = f"{paid['warm']:g}", f"{paid['cold']:g} s"
    span = cold if cold == f"{warm} s" else f"{warm} to {cold}"
    start = f"{duration(minutes * 60)} on" if minutes else "the first minute"
    return f"{start} at best (compiling: {span}, {how})"


def _prices(figures: Document) -> str:
    source = str(figures.get("price_source") or UNKNOWN).partition(":")[0]
    priced = f"as of {figures['prices_as_of']}" if figures.get("prices_as_of") else source
    of, here = figures.get("prices_region"), figures.get("region")
    return priced if of in (None, here) else f"{priced}, of {of}; the job's region is {here}"
