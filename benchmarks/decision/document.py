"""Writes the results into the documentation, between markers, so that neither drifts.

    python -m benchmarks.decision --document

A block begins with ``<!-- begin NAME -->`` and ends with ``<!-- end NAME -->``; what stands between
is made from results.json, levels.json and the gate's own constants.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.decision.cells import Cell
from benchmarks.decision.gate_curve import LOSSES, MODES, SPREADS
from benchmarks.decision.gate_curve import RESULTS as GATE_CURVE
from benchmarks.decision.levels import LEVELS_FILE
from compilegate.domain.judging.design import CALIBRATED, SCHEDULE

ROOT = Path(__file__).parents[2]
HOW_IT_DECIDES = ROOT / "docs" / "how-it-decides.md"
SIMULATION = Path(__file__).with_name("README.md")
RESULTS = Path(__file__).with_name("results.json")
BLOCK = re.compile(
    r"(?P<begin><!-- begin (?P<name>[a-z-]+)[^>]*-->\n).*?(?P<end><!-- end (?P=name) -->)",
    re.DOTALL,
)

# The columns of the tables.
HEADS = {
    "hybrid": "hybrid",
    "shadow": "shadow",
    "canary": "canary",
    "article": "article, letter",
    "article_one_sided": "one-sided",
    "charitable": "charitable",
    "textbook": "textbook",
}
PORTFOLIOS = {
    "mixed": "mixed fleet",
    "boundary_quality": "every arm loses exactly the margin",
    "boundary_speed": "every arm is 1.0999x",
    "boundary": "every arm is one or the other",
}
STRESSES = {
    "none": "none broken",
    "drift": "history drifted by 0.5 sd",
    "drift2": "history drifted by 1 sd",
    "t5": "heavy tails (t, 5 df)",
    "skew": "skewed to the bad side",
    "collapse": "3 % of runs collapse",
    "spread": "candidate's sd 1.5 times",
    "nodes": "nodes differ by 8 %, not 4 %",
    "start_up": "1 to 5 min of start-up",
}
COSTS = (
    ("GPU-hours of the trial, % of the article's", "gpu_hours"),
    ("with bad production runs made again", "gpu_hours_redone"),
    ("short blocks, % of one baseline job", "probe_of_one_job"),
    ("extra full-length jobs a workload", "jobs"),
    ("production runs made by a bad arm", "bad_runs"),
    ("weeks to the decision", "weeks"),
    ("net saving in the time left, % of an oracle's", "net_saving"),
    ("with bad production runs made again", "net_saving_redone"),
)
WATCH = (
    ("all_good", "faultless promotions reverted, all good", "wrong_reverts"),
    ("mixed", "faultless promotions reverted, mixed", "wrong_reverts"),
    ("regressing", "regressions of 2 margins reverted (sd up to the margin)", "right_reverts"),
    ("regressing", "where at least 18 runs were left", "right_reverts_in_time"),
)
RULES = tuple(HEADS)
# Shares of workloads, where none among so many says more than 0.
COUNTED = ("false_promotes", "provable_missed", "wrong_reverts")
MISSED = {
    "promote": "had a bad arm promoted",
    "stay_off": "were rejected",
    "inconclusive": "were left unproven",
    "horizon": "were still open when the runs ran out",
}
MINUS = "\N{MINUS SIGN}"
Cells = Sequence[Mapping[str, Any]]
Figure = Mapping[str, Any]


def write() -> None:
    """Refresh every block of the pages."""
    for page in (HOW_IT_DECIDES, SIMULATION):
        page.write_text(refreshed(page.read_text()))


def refreshed(text: str) -> str:
    """The page with today's results."""
    return with_blocks(text, BLOCKS, json.loads(RESULTS.read_text())["cells"])


def with_blocks(text: str, blocks: Mapping[str, Callable[[Any], str]], results: Any) -> str:
    """The page with the blocks that ``blocks`` names replaced."""

    def block(match: re.Match[str]) -> str:
        make = blocks.get(match["name"])
        return match[0] if make is None else f"{match['begin']}{make(results)}\n{match['end']}"

    return BLOCK.sub(block, text)


def provenance(cells: Cells) -> str:
    """How much was simulated."""
    sizes = sorted({cell["workloads"] for cell in cells})
    seeds = sorted({cell["seed"] for cell in cells})
    size = " or ".join(f"{size:,}" for size in sizes)
    judges = Counter(cell.get("judge", "unnamed") for cell in cells)
    named = ", ".join(f"{judge} in {count}" for judge, count in judges.most_common())
    return (
        f"{len(cells)} cells of {size} workloads each, seed {', '.join(map(str, seeds))}. "
        f"Judge (with a digest of its code): {named} of them. ± is one standard error."
    )


def errors(cells: Cells) -> str:
    """Workloads whose promoted arm is bad."""
    rows = []
    for portfolio, words in PORTFOLIOS.items():
        cell = _cell(cells, Cell(portfolio))
        rows.append([words, *(_of(cell, rule, "false_promotes") for rule in RULES)])
    return table(["bad arm promoted, % of workloads", *HEADS.values()], rows)


def stress(cells: Cells) -> str:
    """Hybrid mode where an assumption does not hold."""
    rows = []
    for name, words in STRESSES.items():
        at = {
            p: _cell(cells, Cell(p, name)) for p in ("boundary_quality", "boundary_speed", "mixed")
        }
        mixed = at["mixed"]
        figures = [_of(cell, "hybrid", "false_promotes") for cell in at.values()]
        figures += [_of(mixed, "hybrid", key) for key in ("provable_missed", "wrong_reverts")]
        rows.append([words, *figures, _of(mixed, "hybrid", "net_saving")])
    for candidates in (1, 3):
        cell = _cell(cells, Cell("boundary_quality", candidates=candidates))
        errors = _of(cell, "hybrid", "false_promotes")
        rows.append([f"{candidates} candidate{'s' * (candidates > 1)}, not 2", errors, *[""] * 5])
    head = ["assumption", "bad promoted: loss = margin", "1.0999x", "mixed",
            "good missed where provable", "wrong reverts", "net saving"]  # fmt: skip
    return table(head, rows)


def power(cells: Cells) -> str:
    """Good arms promoted, by the spread of the metric."""
    good, mixed = _cell(cells, Cell("all_good")), _cell(cells, Cell("mixed"))
    rules = [rule for rule in RULES if not rule.startswith("article")]
    rows = []
    for i, row in enumerate(_rows_of(good, "hybrid")):
        figures = [_percent(_rows_of(good, rule)[i]) if _has(good, rule) else "" for rule in rules]
        figures.append(_percent(_rows_of(mixed, "hybrid")[i]))
        rows.append([f"{row['from']:g} to {row['to']:g}", *figures])
    heads = [HEADS[rule] for rule in rules]
    text = table(["sd over margin", *heads, "hybrid, mixed fleet"], rows)
    return f"{text}\n\n{_missed(mixed)}"


def costs(cells: Cells) -> str:
    """What deciding costs in the mixed fleet, and what it brings."""
    cell = _cell(cells, Cell("mixed"))
    rows = [[words, *(_of(cell, rule, key) for rule in RULES)] for words, key in COSTS]
    text = table(["mixed fleet", *HEADS.values()], rows)
    return f"{text}{_alone(cells)}"


def _alone(cells: Cells) -> str:
    """Shadow mode where the trial pays for its baseline runs."""
    mixed = _cell(cells, Cell("mixed", production_beside=False))
    edge = _cell(cells, Cell("boundary_quality", production_beside=False))
    if mixed is None:
        return ""
    keys = ("gpu_hours", "net_saving", "provable_missed", "false_promotes")
    hours, saving, missed, bad = (_of(mixed, "shadow", key) for key in keys)
    return (
        "\n\nWhere production makes no runs, as for workloads that are not registered, a trial "
        "is shadow with baseline runs of its own: the mixed fleet "
        f"takes {hours} % of the article's GPU-hours and saves {saving} % of an oracle's; bad arms "
        f"promoted: {_share(bad)}, with both exactly at the margin "
        f"{_share(_of(edge, 'shadow', 'false_promotes'))}; good ones missed where they could be "
        "proven: "
        f"{missed} %."
    )


def share(cells: Cells) -> str:
    """Extra GPU-hours of trials in production, over those of shadow trials."""
    beside = _cell(cells, Cell("mixed"))
    alone = _cell(cells, Cell("mixed", production_beside=False))
    rows = []
    for words, shadow in (("beside production's own baseline runs", beside),
                          ("with baseline runs of its own", alone)):  # fmt: skip
        for redone, key in (("", "gpu_hours"), (", bad runs made again", "gpu_hours_redone")):
            cells_ = [_ratio(beside, shadow, rule, key) for rule in ("canary", "hybrid")]
            rows.append([f"{words}{redone}", *cells_])
    return table(["% of a shadow trial's extra GPU-hours", "canary", "hybrid"], rows)


def _ratio(
    beside: Mapping[str, Any] | None, shadow: Mapping[str, Any] | None, rule: str, key: str
) -> str:
    """A ratio of two shares; its error takes them for independent (first-order propagation)."""
    if beside is None or shadow is None or not (_has(beside, rule) and _has(shadow, "shadow")):
        return ""
    over, under = beside["rules"][rule][key], shadow["rules"]["shadow"][key]
    ratio = over["percent"] / under["percent"]
    error = ratio * math.hypot(over["se"] / over["percent"], under["se"] / under["percent"])
    return _percent({"percent": 100 * ratio, "se": 100 * error})


def watch(cells: Cells) -> str:
    """What the probation reverts."""
    rows = []
    for portfolio, words, key in WATCH:
        cell = _cell(cells, Cell(portfolio))
        rows.append([words, *(_of(cell, rule, key) for rule in RULES)])
    cell = _cell(cells, Cell("regressing"))
    rows.append(["runs from the fall to the revert, median", *(_delay(cell, r) for r in RULES)])
    rows.append(["regressions the time left was too short for", *(_cut(cell, r) for r in RULES)])
    return table(["%, but for the last two rows", *HEADS.values()], rows)


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


BLOCKS: Mapping[str, Callable[[Cells], str]] = {
    "provenance": provenance,
    "errors": errors,
    "stress": stress,
    "power": power,
    "costs": costs,
    "share": share,
    "watch": watch,
    "constants": constants,
    "levels": levels,
    "gate-curve": gate_curve,
}


def _cell(cells: Cells, cell_of: Cell) -> Mapping[str, Any] | None:
    key = cell_of.key
    return next((cell for cell in cells if all(cell[name] == key[name] for name in key)), None)


def _has(cell: Mapping[str, Any] | None, rule: str) -> bool:
    return cell is not None and rule in cell["rules"]


def _rows_of(cell: Mapping[str, Any] | None, rule: str) -> list[Figure]:
    return list(cell["rules"][rule]["power_by_spread"]) if cell and _has(cell, rule) else []


def _of(cell: Mapping[str, Any] | None, rule: str, key: str) -> str:
    if cell is None or not _has(cell, rule):
        return ""
    figure = cell["rules"][rule].get(key)
    if key in COUNTED and figure and figure["percent"] == 0:
        return f"0 of {figure['n']:,}"
    return _percent(figure)


def _share(text: str) -> str:
    """With its unit, unless it is a count of a number."""
    return text if " of " in text else f"{text} %"


def _percent(figure: Figure | None) -> str:
    if figure is None:
        return ""
    value = figure.get("percent", figure.get("mean"))
    if value is None:
        return "-"
    if not figure["se"]:
        return f"{value:g}"
    digits = 2 if "percent" not in figure or abs(value) < 1 else 1
    return f"{value:.{digits}f} ± {figure['se']:.{digits}f}".replace("-", MINUS)


def _delay(cell: Mapping[str, Any] | None, rule: str) -> str:
    median = cell["rules"][rule]["delay"]["median"] if cell and _has(cell, rule) else None
    return "" if median is None else f"{median:g}"


def _cut(cell: Mapping[str, Any] | None, rule: str) -> str:
    endings = cell["rules"][rule].get("right_reverts_by") if cell and _has(cell, rule) else None
    return f"{endings.get('horizon', 0)} of {sum(endings.values())}" if endings else ""


def _missed(mixed: Mapping[str, Any] | None) -> str:
    """How the good arms that could have been proven were missed, in hybrid mode."""
    if mixed is None:
        return ""
    hybrid = mixed["rules"]["hybrid"]
    share, endings = hybrid["provable_missed"], hybrid.get("provable_missed_by", {})
    parts = ", ".join(f"{count} {MISSED[verdict]}" for verdict, count in endings.items())
    return (
        f"Where a good arm could be proven in the mixed fleet (sd up to 0.8 margins, 24 runs or "
        f"more left; {share['n']} workloads), hybrid mode missed {_percent(share)} %: {parts}."
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
