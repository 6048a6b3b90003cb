"""Writes the kept results into README.md, between markers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scipy.stats import beta

from benchmarks.decision.tables import shown, table
from benchmarks.referee.played import Results, kept_results

PAGE = Path(__file__).with_name("README.md")
BLOCK = re.compile(
    r"(?P<begin><!-- begin (?P<name>[a-z-]+) -->\n).*?(?P<end><!-- end (?P=name) -->)", re.DOTALL
)
OURS = "Compilegate"
LEVEL = 0.05
ERRORS = 2  # standard errors by which a rule may be above it by chance
Cell = Mapping[str, Any]
Figure = dict[str, Any]


def write() -> None:
    """Refresh every block."""
    PAGE.write_text(refreshed(PAGE.read_text(), kept_results()))


def refreshed(text: str, found: Results) -> str:
    """The page with these results."""
    return BLOCK.sub(lambda at: f"{at['begin']}{BLOCKS[at['name']](found)}\n{at['end']}", text)


def share(promoted: int, trials: int) -> Figure:
    """Per cent of the trials and its standard error."""
    p = promoted / trials
    return {"percent": 100 * p, "se": 100 * math.sqrt(p * (1 - p) / trials), "n": trials}


def upper_bound(promoted: int, trials: int) -> float:
    """Clopper and Pearson's one-sided 95 % bound, in per cent."""
    return (
        100.0
        if promoted == trials
        else 100 * float(beta.ppf(1 - LEVEL, promoted + 1, trials - promoted))
    )


def pooled(cell: Cell) -> Figure:
    """The share of all groups' trials that were promoted."""
    return share(sum(cell["promoted"]), cell["trials"] * len(cell["promoted"]))


def by_rule(found: Results, *, loses: bool) -> dict[str, list[Cell]]:
    """The cells of each rule by margin; rules with the fewest wrong promotes come first."""
    cells: dict[str, list[Cell]] = {}
    for cell in found["cells"]:
        if cell["loses"] == loses:
            cells.setdefault(cell["rule"], []).append(cell)
    return {rule: sorted(cells[rule], key=lambda cell: cell["margin"]) for rule in order(found)}


def order(found: Results) -> list[str]:
    """The rules by their mean of wrong promotes over the margins."""
    wrong: dict[str, float] = {}
    for cell in found["cells"]:
        if cell["loses"]:
            wrong[cell["rule"]] = wrong.get(cell["rule"], 0.0) + pooled(cell)["percent"]
    return sorted(wrong, key=lambda rule: wrong[rule])


def margins(found: Results) -> list[float]:
    """Every margin, in sd."""
    return sorted({cell["margin"] for cell in found["cells"]})


def _provenance(found: Results) -> str:
    trials = sum(pooled(cell)["n"] for cell in found["cells"] if cell["rule"] == OURS)
    runs = sum(group["runs"] for group in found["groups"])
    numbers = {
        f"{cell['margin']:g} sd": pooled(cell)["n"] for cell in by_rule(found, loses=True)[OURS]
    }
    each = ", ".join(f"{n:,} at {margin}" for margin, n in numbers.items())
    return (
        f"{len(found['groups'])} groups, {runs:,} runs. {trials:,} trials, all decided by each of "
        f"{len(order(found))} rules; a cell has {each}. Judge (with a digest of its code): "
        f"{found['judge']}. Rules and data: `{found['rules'][:8]}`. ± is one standard error."
    )


def _safe(found: Results) -> str:
    """The rules that keep their level at every margin, with the worst of what they find."""
    good = by_rule(found, loses=False)
    rows = []
    for rule, cells in by_rule(found, loses=True).items():
        wrong = max((pooled(cell) for cell in cells), key=lambda one: float(one["percent"]))
        if wrong["percent"] <= 100 * LEVEL + ERRORS * wrong["se"]:
            least = min(
                (pooled(cell) for cell in good[rule]), key=lambda one: float(one["percent"])
            )
            spent = " / ".join(_spent(cell) for cell in good[rule])
            rows.append([_named(rule), shown(wrong), shown(least), spent])
    runs = " / ".join(f"{margin:g}" for margin in margins(found))
    return table(
        ["rule", "most wrong promotes, %", "least good found, %", f"runs, at {runs} sd"], rows
    )


def _shares(found: Results, *, loses: bool) -> Iterator[list[str]]:
    for rule, cells in by_rule(found, loses=loses).items():
        yield [_named(rule), *(shown(pooled(cell)) for cell in cells)]


def _named(rule: str) -> str:
    return f"**{rule}**" if rule == OURS else rule


def _wrong(found: Results) -> str:
    rows = [
        [*row, _worst(found, cells)]
        for row, cells in zip(
            _shares(found, loses=True), by_rule(found, loses=True).values(), strict=True
        )
    ]
    return table([*_head(found), "worst group, all margins"], rows)


def _worst(found: Results, cells: list[Cell]) -> str:
    counts = [sum(promoted) for promoted in zip(*(cell["promoted"] for cell in cells), strict=True)]
    trials = sum(cell["trials"] for cell in cells)
    place = max(range(len(counts)), key=counts.__getitem__)
    where = f" ({found['groups'][place]['name']})" if counts[place] else ""
    return f"{shown(share(counts[place], trials))}{where}"


def _found(found: Results) -> str:
    return table(_head(found), list(_shares(found, loses=False)))


def _head(found: Results) -> list[str]:
    return ["%, at a margin of", *(f"{margin:g} sd" for margin in margins(found))]


def _runs(found: Results) -> str:
    """Runs of trials with a candidate that is as good, and with one that is worse."""
    bad = by_rule(found, loses=True)
    rows = [
        [_named(rule), *(_spent(cell) for cell in cells), *(_spent(cell) for cell in bad[rule])]
        for rule, cells in by_rule(found, loses=False).items()
    ]
    good, worse = (
        [f"{words}, {margin:g} sd" for margin in margins(found)] for words in ("as good", "worse")
    )
    return table(["runs", *good, *worse], rows)


def _spent(cell: Cell) -> str:
    """Candidate runs, the baseline's where their number differs, and what else it took."""
    candidate, baseline = (
        f"{cell[key]['mean']:.1f}".removesuffix(".0") for key in ("candidate_runs", "baseline_runs")
    )
    words = candidate if candidate == baseline else f"{candidate}, baseline {baseline}"
    return f"{words} + {cell['other']['mean']:.2f}" if cell["other"]["mean"] else words


def _groups(found: Results) -> str:
    ours = {loses: by_rule(found, loses=loses)[OURS] for loses in (True, False)}
    trials = sum(cell["trials"] for cell in ours[True])
    rows = []
    for place, group in enumerate(found["groups"]):
        wrong, good = (
            sum(cell["promoted"][place] for cell in ours[loses]) for loses in (True, False)
        )
        rows.append([
            group["name"], f"{group['runs']}", f"{group['sd']:g}", f"{wrong} of {trials}",
            f"{upper_bound(wrong, trials):.1f}", shown(share(good, trials)),
        ])  # fmt: skip
    head = ["group", "runs", "sd", "wrong promotes", "at most, % (95 %)", "good found, %"]
    return table(head, rows)


BLOCKS: Mapping[str, Callable[[Results], str]] = {
    "provenance": _provenance,
    "safe": _safe,
    "wrong": _wrong,
    "found": _found,
    "runs": _runs,
    "groups": _groups,
}
