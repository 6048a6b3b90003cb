"""Writes targets, worlds and the operating characteristic into benchmarks/decision/README.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.decision.document import SIMULATION, table, with_blocks
from benchmarks.decision.targets import (
    LOSSES,
    MISSED,
    REACHED,
    RESULTS,
    RULE,
    SHOWN,
    SPREADS,
    shown,
)

WORLDS = {
    "none": "none of these",
    "trend2": "the metric rises 0.02 sd a run",
    "trend5": "rises 0.05 sd a run",
    "falling5": "falls 0.05 sd a run",
    "walk": "walks by 0.15 sd a night",
    "trend5_before": "rises 0.05 sd a run, history too",
    "walk_before": "walks by 0.15 sd a night, history too",
    "nights": "half the variance is the night's, correlation 0.8 from one to the next",
    "offset": "history 0.5 sd too low",
    "offset2": "history 1 sd too low",
    "offset3": "history 1.5 sd too low",
    "drift": "history off by chance, sd 0.5",
    "drift2": "history off by chance, sd 1",
    "t5": "heavy tails (t, 5 df)",
    "t3": "heavier tails (t, 3 df)",
    "skew": "skewed to the bad side",
    "bimodal": "one run in five ends in a worse basin, 2.2 sd below",
    "binomial": "97 to 99.3 % right of few examples (binomial)",
    "collapse": "3 % of runs collapse",
    "spread": "candidate's sd 1.5 times",
    "examples4": "four times the evaluation examples (90 % of the variance)",
    "nodes": "nodes differ by 8 %, not 4 %",
    "slow_nodes": "three nodes in ten take 22 % longer",
    "early_stop": "jobs stop early, steps differ by 25 %",
    "start_up": "1 to 5 min of start-up",
}
FLEET = (
    ("bad promoted, mixed", "false_promotes"),
    ("good missed where provable", "provable_missed"),
    ("good missed", "good_missed"),
    ("faultless reverted", "wrong_reverts"),
    ("net saving", "net_saving"),
    ("true ratio below the interval", "true_below_interval"),
)
STATES = {
    SHOWN: "reached",
    REACHED: "reached, within chance of missed",
    MISSED: "**missed**",
    None: "",
}
Kept = Mapping[str, Any]


def write() -> None:
    """Refresh every block of the page."""
    SIMULATION.write_text(refreshed(SIMULATION.read_text()))


def refreshed(text: str) -> str:
    """The page with the kept results."""
    return with_blocks(text, BLOCKS, json.loads(RESULTS.read_text()))


def targets(kept: Kept) -> str:
    """Every target with what the shipped judge reaches."""
    rows = []
    for row in kept["targets"]:
        bound = f"{'at least' if row['least'] else 'at most'} {row['bound']:g}"
        state = STATES[row["state"]]
        sizes = f"{row['n']:,}" if row["n"] else ""
        rows.append([row["words"], shown(row), sizes, bound, state, row["study"]])
    heads = ["hybrid mode, two candidates", "now", "of", "target", "", "judge 1.2.0, from outside"]
    judges = Counter(row["judge"] for row in kept["targets"] if row["judge"])
    named = ", ".join(f"{judge} in {count} rows" for judge, count in judges.most_common())
    return f"{table(heads, rows)}\n\nJudge (with a digest of its code): {named}."


def worlds(kept: Kept) -> str:
    """What every broken assumption does, at the margin and in the fleet."""
    rows = []
    for stress, words in WORLDS.items():
        edge, fleet = (_of(kept, name, stress) for name in ("boundary_quality", "mixed"))
        alone = _of(kept, "boundary_quality", stress, rule="shadow")
        if edge or fleet or alone:
            errors = [_figure(cell, "false_promotes") for cell in (edge, alone)]
            rows.append([words, *errors, *(_figure(fleet, key) for _, key in FLEET)])
    return table(
        ["world", "bad promoted, both lose the margin", *(head for head, _ in FLEET)], rows
    )


def curve(kept: Kept) -> str:
    """How often one fast arm is promoted, and is still on after the probation, by its true loss."""
    rows, shown_cells = [], []
    for loss in LOSSES:
        cells = [_of(kept, f"loss {loss:g}", "none", spread) for spread in SPREADS]
        shown_cells += [cell for cell in cells if cell]
        if any(cells):
            both = [f"{_figure(c, 'promoted')}, {_figure(c, 'kept')}" if c else "" for c in cells]
            rows.append([f"{loss:g}", *both])
    heads = [f"sd {spread:g} margins" for spread in SPREADS]
    text = table(["true loss, margins", *heads], rows)
    sizes = " or ".join(map(str, sorted({cell["workloads"] for cell in shown_cells})))
    judges = ", ".join(sorted({cell["judge"] for cell in shown_cells}))
    return f"{text}\n\n{sizes} workloads a cell, judge {judges}." if shown_cells else text


BLOCKS: Mapping[str, Callable[[Kept], str]] = {
    "targets": targets,
    "targets-worlds": worlds,
    "targets-curve": curve,
}


def _of(
    kept: Kept, portfolio: str, stress: str, spread: float | None = None, rule: str = RULE
) -> Kept | None:
    wanted = (portfolio, stress, spread, rule, None)
    keys = ("portfolio", "stress", "spread", "rule", "version")
    return next(
        (cell for cell in kept["cells"] if tuple(cell.get(key) for key in keys) == wanted), None
    )


def _figure(cell: Kept | None, key: str) -> str:
    figure = cell["figures"][key] if cell else {"percent": None}
    return "" if figure["percent"] is None else _short(figure)


def _short(figure: Kept) -> str:
    if figure["percent"] == 0:
        return f"0 of {figure['n']:,}"
    return f"{figure['percent']:.1f} ± {figure['se']:.1f}"
