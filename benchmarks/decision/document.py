"""Writes the results into the documentation, between markers, so that neither drifts.

    python -m benchmarks.decision --document

A block begins with ``<!-- begin NAME -->`` and ends with ``<!-- end NAME -->``; what stands between
is made from the kept results and the gate's own constants.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.decision.gate_curve import LOSSES, MODES, SPREADS
from benchmarks.decision.gate_curve import RESULTS as GATE_CURVE
from benchmarks.decision.guardrails import RESULTS as GUARDRAILS
from benchmarks.decision.levels import LEVELS_FILE
from benchmarks.decision.probation_document import BLOCKS as PROBATION_BLOCKS
from benchmarks.decision.study import EDGE_BOUND, FLEETS, LATER, RESULTS, TARGETS
from benchmarks.decision.tables import shown, table
from compilegate.domain.judging.design import CALIBRATED, SCHEDULE

HERE = Path(__file__).parent
HOW_IT_DECIDES = HERE.parents[1] / "docs" / "how-it-decides.md"
SIMULATION, PROBATION = HERE / "README.md", HERE / "probation.md"
PAGES = (HOW_IT_DECIDES, SIMULATION, PROBATION)
BLOCK = re.compile(
    r"(?P<begin><!-- begin (?P<name>[a-z-]+)[^>]*-->\n).*?(?P<end><!-- end (?P=name) -->)",
    re.DOTALL,
)
# 95 %, one-sided: of a normal variable, and of none among n (100 x 3/n per cent).
ONE_SIDED, RULE_OF_THREE = 1.645, 3.0
WORLDS = {
    "": "none of these",
    "trend2": "the metric rises by 0.02 sd a run",
    "trend5": "it rises by 0.05 sd a run",
    "walk": "it walks by 0.15 sd a night",
    "nights": "half the variance is the night's, correlation 0.8 from one to the next",
    "variance": "the candidate's variance is twice as large",
    "diverging": "one run in twenty diverges",
    "rounded": "the metric is rounded to 200 examples",
    "t3": "heavy tails (t, 3 df)",
    "skew": "skewed to the bad side",
    "from 2": "the loss begins with the arm's second run",
    "from 3": "with its third",
    "from 4": "with its fourth",
    "from 4, strict": "with its fourth, strict",
    "from 6": "with its sixth",
    "from 9": "with its ninth",
    "late": "a fault shows in the check at the last weights alone",
    "rho 0.1": "table of 29 faults (rho 0.10), as many missed",
    "rho 0.1, walk": "the same, the metric walks",
    "rho 0.25": "table of 11 faults (rho 0.24), as many missed",
    "blind": "the check sees no fault at all",
}
FIGURES = (
    ("good missed, %", "good_missed"),
    ("good missed where provable, %", "provable_missed"),
    ("good ended as worse, %", "ended_worse"),
    ("bad promoted, %", "bad_promoted"),
    ("faultless promotions reverted, %", "wrong_reverts"),
    ("true speed-up below the 95 % interval, %", "below_interval"),
    ("above it, %", "above_interval"),
    ("GPU-hours of the trial, % of the article's", "gpu_hours"),
    ("net saving, % of an oracle's", "net_saving"),
    ("the same by runs", "net_saving_by_runs"),
    ("net saving, % of what good arms alone would save", "net_saving_of_good"),
    ("net saving, % of what any speed-up would save", "net_saving_of_most"),
    ("weeks to the decision", "weeks"),
    ("production runs by a bad arm", "bad_runs"),
)
LOST = (
    ("arms that lose part of a margin, not turned on", "not_good"),
    ("good missed", "missed"),
    ("runs before the promotion, another arm, reverts", "later"),
    ("the trial's extra runs and blocks", "trial"),
)
COLUMNS = ("hybrid", "canary", "shadow", "hybrid, strict", "canary, strict", "shadow, strict",
           "article")  # fmt: skip
OTHER = ("good_missed", "ended_worse", "bad_promoted", "wrong_reverts", "net_saving")
Cells = Mapping[str, Mapping[str, Any]]


def write() -> None:
    """Refresh every block of the pages."""
    for page in PAGES:
        page.write_text(refreshed(page.read_text()))


def refreshed(text: str) -> str:
    """The page with the kept results."""
    cells = {cell["name"]: cell for cell in json.loads(RESULTS.read_text())["cells"]}

    def block(match: re.Match[str]) -> str:
        return f"{match['begin']}{BLOCKS[match['name']](cells)}\n{match['end']}"

    return BLOCK.sub(block, text)


def provenance(cells: Cells) -> str:
    """How much was simulated, by which judge."""
    judges = Counter(cell["judge"] for cell in cells.values())
    named = ", ".join(f"{judge} in {count}" for judge, count in judges.most_common())
    played = sum(cell["workloads"] for cell in cells.values())
    return (
        f"{len(cells)} cells, {played:,} workloads. Judge (with a digest of its code): {named} of "
        "them. ± is one standard error."
    )


def targets(cells: Cells) -> str:
    """Every target: what judge 2 reaches, what has to be reached, what is, in both fleets."""
    rows = []
    for target in TARGETS:
        words = f"{target.words}, {target.mode}"
        row = [words, f"{'at least' if target.least else 'at most'} {target.bound:g}"]
        for fleet in FLEETS:
            name = f"{fleet}, {target.mode}"
            before, now = (_figure(cells, one, target.figure) for one in (f"{name}, strict", name))
            state = _state(now, target.bound, least=target.least)
            row += [shown(before), shown(now), f"{now['n']:,}", state]
        rows.append(row)
    worst = max(_edges(cells), key=lambda one: float(one["percent"]))
    late, late_before = (
        _figure(cells, name, "bad_promoted") for name in ("edge, from 4", "edge, from 4, strict")
    )
    before = _figure(cells, "edge, hybrid, strict", "bad_promoted")
    for words, one, now in (
        ("at the margin: bad promoted, %, the worst of the generators below", before, worst),
        ("the same, the loss begins with the fourth run", late_before, late),
    ):
        rows.append([words, f"at most {EDGE_BOUND:g}", shown(one), shown(now), f"{now['n']:,}",
                     _state(now, EDGE_BOUND), *[""] * 4])  # fmt: skip
    columns = ["before (strict)", "reached", "of", ""]
    return table(["", "target", *columns, *(f"batch: {one}".rstrip(": ") for one in columns)], rows)


def _edges(cells: Cells) -> list[Mapping[str, Any]]:
    """Bad promotions in every cell at the margin, from the first run on; faults caught at rho."""
    return [
        cell["figures"]["bad_promoted"]
        for name, cell in cells.items()
        if cell["portfolio"] == "boundary_quality"
        and not cell["strict"]
        and cell["screening"]["rho"] is None
        and cell["stress"] not in LATER
    ]


def _state(figure: Mapping[str, Any], bound: float, *, least: bool = False) -> str:
    """Whether the figure keeps its bound; within chance where its one-sided 95 % limit does not."""
    side = -1.0 if least else 1.0
    value, apart = figure["percent"], side * (figure["percent"] - bound)
    error = ONE_SIDED * figure["se"] if value else 100 * RULE_OF_THREE / figure["n"]
    if apart > 0:
        return "**missed**" if apart > error else "**missed**, within chance of reached"
    return "reached" if apart + error <= 0 else "reached, within chance of missed"


def fleet(cells: Cells) -> str:
    """Both fleets in every mode, with the check and without, beside the article's procedure."""
    rows = []
    for name in FLEETS:
        rows += [
            [f"{name}: {words}", *(shown(_figure(cells, f"{name}, {one}", key)) for one in COLUMNS)]
            for words, key in FIGURES
        ]
    return table(["", *COLUMNS], rows)


def losses(cells: Cells) -> str:
    """Where an oracle's saving goes."""
    names = [f"{name}, {mode}" for name in FLEETS for mode in COLUMNS[:6]]
    rows = [
        [words, *(shown(cells[name]["figures"]["lost"][key]) for name in names)]
        for words, key in LOST
    ]
    return table(["% of an oracle's saving, by runs", *names], rows)


def edges(cells: Cells) -> str:
    """Both arms exactly at the margin, in every world."""
    rows = []
    for mode in ("hybrid", "canary", "shadow"):
        names = (f"edge, {mode}", f"edge, {mode}, strict")
        rows += [[name.removeprefix("edge, "), *_kept(cells, name)] for name in names]
    for world, words in WORLDS.items():
        if f"edge, {world}" in cells:
            rows.append([f"hybrid: {words}", *_kept(cells, f"edge, {world}")])
    rows.append(["hybrid: both are 1.0999x instead", *_kept(cells, "edge, slow")])
    heads = [
        "both arms lose the margin",
        "bad promoted, %",
        "still on after the probation, %",
        "of",
    ]
    return table(heads, rows)


def _kept(cells: Cells, name: str) -> list[str]:
    promoted, kept = (_figure(cells, name, key) for key in ("bad_promoted", "bad_kept"))
    return [shown(promoted), shown(kept), f"{promoted['n']:,}"]


def worlds(cells: Cells) -> str:
    """The fleet in other worlds."""
    heads = {key: words for words, key in FIGURES}
    rows = []
    for world, words in WORLDS.items():
        name = f"compilers, {world or 'hybrid'}"
        if name in cells:
            rows.append([words, *(shown(_figure(cells, name, key)) for key in OTHER)])
    return table(["compilers, hybrid", *(heads[key] for key in OTHER)], rows)


def constants(_: Cells) -> str:
    """The looks' constants."""
    return table(
        ["n_max", *map(str, SCHEDULE)], [["c", *(f"{CALIBRATED[n]:.2f}" for n in SCHEDULE)]]
    )


def levels(_: Cells) -> str:
    """What the looks spend in the designs and worlds that trials have, over what they may."""
    measured = json.loads(LEVELS_FILE.read_text())["rows"]
    rows = []
    for case in dict.fromkeys(row["case"] for row in measured):
        own = [row for row in measured if row["case"] == case]
        rows.append([case, *(f"{row['share']:.2f} ± {max(row['se'], 0.01):.2f}" for row in own)])
    heads = [f"{level:.2g}" for level in dict.fromkeys(row["level"] for row in measured)]
    return table(["share of the level that is spent, at level", *heads], rows)


def gate_curve(_: Cells) -> str:
    """How often the quality gate passes a true loss, and how many runs that takes."""
    kept = json.loads(GATE_CURVE.read_text())["cells"]
    cells = {(one["mode"], one["loss"], one["spread"]): one for one in kept}
    rows = []
    for mode in MODES:
        for loss in LOSSES:
            own = [cells[mode, loss, spread] for spread in SPREADS]
            rows.append(
                [mode, f"{loss:g}", *(f"{one['percent']:.1f} ({one['runs']:.0f})" for one in own)]
            )
    return table(["", "true loss", *(f"sd {spread:g}" for spread in SPREADS)], rows)


def guardrails(_: Cells) -> str:
    """What becomes of candidates of one metric and of four."""
    measured = json.loads(GUARDRAILS.read_text())["cells"]
    rows: dict[str, list[str]] = {}
    for one in measured:
        apart = f", correlated by {one['correlation']:g}" if one["correlation"] else ""
        rows.setdefault(one["world"] + apart, []).append(
            f"{one['promoted']:.2f} / {one['worse']:.2f} / {one['alarms']:.1f} ({one['runs']:.0f})"
        )
    spreads = dict.fromkeys(f"sd {one['spread']:g}" for one in measured)
    return table(["", *spreads], [[name, *cells] for name, cells in rows.items()])


def _figure(cells: Cells, name: str, key: str) -> Mapping[str, Any]:
    figure: Mapping[str, Any] = cells[name]["figures"][key]
    return figure


BLOCKS: Mapping[str, Callable[[Cells], str]] = {
    "provenance": provenance,
    "targets": targets,
    "fleet": fleet,
    "losses": losses,
    "edges": edges,
    "worlds": worlds,
    "constants": constants,
    "levels": levels,
    "gate-curve": gate_curve,
    "guardrails": guardrails,
    **PROBATION_BLOCKS,
}
