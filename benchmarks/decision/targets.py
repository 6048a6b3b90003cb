"""What the judge has to reach, computed: each target with its figure, error, judge and digest.

    python -m benchmarks.decision targets [--only margin ...] [--share 1.0] [--jobs 2]
        [--output FILE]

Every cell is seeded workload by workload. What has been played is kept under build/, by the digest
of the judge, so that a run that was stopped goes on where it was and never mixes two judges.
``--share 0.1`` plays a tenth of the workloads.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.decision.cells import Cell, Figure, figures_of
from benchmarks.decision.played import FOLDER, played
from benchmarks.decision.provenance import judge_name
from benchmarks.decision.truth import STRESSES

RESULTS = Path(__file__).with_name("targets.json")
SEED = 22
RULE = "hybrid"
# True losses, in margins, and spreads, in margins, of the operating characteristic.
LOSSES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.25, 1.5, 2.0)
SPREADS = (0.4, 0.7, 1.0, 1.5)
# What a figure is against its bound.
SHOWN, REACHED, MISSED = "shown", "reached", "missed"
# 95 %, one-sided: of a normal variable, and of none among n (100 x 3/n per cent).
ONE_SIDED, RULE_OF_THREE = 1.645, 3.0
# 0 of 6,000 rules out more than 0.05 % with 95 % confidence.
FLEET = 6000


@dataclass(frozen=True)
class Target:
    """A figure of one cell and what it has to be; ``least`` where more is better.

    ``study`` is what an independent simulation measured for an earlier judge.
    """

    name: str
    words: str
    cell: Cell
    figure: str
    bound: float
    study: str
    least: bool = False

    def state(self, figure: Mapping[str, Any]) -> str | None:
        """Whether the figure keeps its bound, and beyond chance; None if nothing was counted.

        Beyond chance: so is the limit of its one-sided 95 % interval, of none 3/n.
        """
        value, n = figure["percent"], figure["n"]
        if value is None:
            return None
        side = -1.0 if self.least else 1.0
        error = ONE_SIDED * figure["se"] if value else 100 * RULE_OF_THREE / n
        if side * (value - self.bound) > 0:
            return MISSED
        return SHOWN if side * (value - self.bound) + error <= 0 else REACHED


def _cell(portfolio: str, stress: str = "none", workloads: int = 2000, **more: Any) -> Cell:
    return Cell(portfolio, stress, workloads=workloads, seed=SEED, rules=(RULE,), **more)


def _fleet(stress: str = "none") -> Cell:
    return _cell("mixed", stress, FLEET)


def _edge(stress: str, workloads: int = 3000) -> Cell:
    return _cell("boundary_quality", stress, workloads)


TARGETS = (
    Target("still", "both arms lose exactly the margin, nothing moves: bad promoted, %",
           _edge("none", 4000), "false_promotes", 2.0, "2.3 to 3.4"),
    Target("trend2", "the same, the metric rises 0.02 sd a run",
           _edge("trend2"), "false_promotes", 3.0, "8.8"),
    Target("trend5", "the same, 0.05 sd a run",
           _edge("trend5"), "false_promotes", 3.0, "16.6"),
    Target("walk", "the same, it walks by 0.15 sd a night",
           _edge("walk"), "false_promotes", 3.0, "5.8"),
    Target("mixed", "mixed fleet: bad promoted, %",
           _fleet(), "false_promotes", 0.05, "0 of 1,200"),
    Target("provable", "good missed where provable, %",
           _fleet(), "provable_missed", 2.0, "3.8"),
    Target("missed", "good missed, %",
           _fleet(), "good_missed", 10.0, "18.8"),
    Target("provable-bought", "good missed where provable, four times the evaluation, %",
           _fleet("examples4"), "provable_missed", 2.0, ""),
    Target("missed-bought", "good missed, four times the evaluation, %",
           _fleet("examples4"), "good_missed", 10.0, ""),
    Target("hours", "GPU-hours of the trial, % of the article's",
           _fleet(), "gpu_hours", 20.0, "19.4"),
    Target("saving", "net saving, % of an oracle's",
           _fleet(), "net_saving", 80.0, "68 to 74", least=True),
    Target("reverted", "faultless promotions reverted, %",
           _fleet(), "wrong_reverts", 1.0, "3.0"),
    Target("interval", "true speed-up below the 95 % interval, % of promotions",
           _fleet(), "true_below_interval", 3.0, "10.3"),
)  # fmt: skip
# What tells cells apart.
SAME = ("portfolio", "stress", "candidates", "spread", "max_runs", "production_beside")
# Every world, at the margin and where a fleet is as good as it can be.
WORLDS = tuple(STRESSES)
MOVING = ("none", "trend2", "trend5", "falling5", "walk", "trend5_before", "walk_before", "nights",
          "offset", "offset2", "offset3", "drift", "drift2")  # fmt: skip
WORLD_WORKLOADS, CURVE_WORKLOADS = 2000, 1000


def worlds() -> Iterator[Cell]:
    """Both arms at the margin, and a fleet, in every world."""
    for stress in WORLDS:
        yield _edge(stress, WORLD_WORKLOADS)
        yield _cell("mixed", stress, WORLD_WORKLOADS)


def alone() -> Iterator[Cell]:
    """Trials that pay for their baseline runs, and so have few: where history or time moves."""
    for stress in MOVING:
        cell = _edge(stress, WORLD_WORKLOADS)
        yield replace(cell, rules=("shadow",), production_beside=False)


def curve() -> Iterator[Cell]:
    """One fast arm of a known loss, by the metric's spread."""
    for spread in SPREADS:
        for loss in LOSSES:
            yield _cell(f"loss {loss:g}", workloads=CURVE_WORKLOADS, candidates=1, spread=spread)


GROUPS = {"worlds": worlds, "alone": alone, "curve": curve}


def largest(cells: Sequence[Cell]) -> list[Cell]:
    """Each cell once, with the most workloads that any row asks for."""
    by_key: dict[str, Cell] = {}
    for cell in cells:
        key = json.dumps([cell.key, cell.rules])
        if key not in by_key or by_key[key].workloads < cell.workloads:
            by_key[key] = cell
    return list(by_key.values())


def simulate(cell: Cell, jobs: int, share: float, folder: Path = FOLDER) -> dict[str, Any]:
    """One cell's figures, with the judge that decided and the seconds that were spent now."""
    began = time.monotonic()
    outcomes = played(cell.of(share), jobs, folder)
    return {
        **cell.key,
        "workloads": cell.of(share).workloads,
        "seed": cell.seed,
        "judge": judge_name(),
        "seconds": round(time.monotonic() - began, 1),
        "rule": cell.rules[0],
        "figures": figures_of(outcomes, cell.rules[0]),
    }


def rows(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every target with what was simulated of it."""
    return [_row(target, cells) for target in TARGETS]


def _row(target: Target, cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    now = next((cell for cell in cells if _same(cell, target.cell)), None)
    figure = _figure(now, target.figure)
    return {
        "name": target.name,
        "words": target.words,
        "bound": target.bound,
        "least": target.least,
        "value": figure["percent"],
        "se": figure["se"],
        "n": figure["n"],
        "state": target.state(figure),
        "judge": now["judge"] if now else None,
        "study": target.study,
    }


def _figure(cell: Mapping[str, Any] | None, name: str) -> Figure:
    nothing: Figure = {"percent": None, "se": None, "n": 0}
    return nothing if cell is None else cell["figures"].get(name, nothing)


def _same(kept: Mapping[str, Any], cell: Cell) -> bool:
    alike = all(kept.get(key) == getattr(cell, key) for key in SAME)
    return alike and kept["rule"] == cell.rules[0]


def main(arguments: Sequence[str]) -> None:
    """Simulate what was asked for, keep it, print the targets."""
    options = _options(arguments)
    chosen = [target.cell for target in TARGETS if not options.only or target.name in options.only]
    if not options.only or set(options.only) & GROUPS.keys():
        groups = [name for name in GROUPS if not options.only or name in options.only]
        chosen += [cell for name in groups for cell in GROUPS[name]()]
    for cell in largest(chosen):
        result = simulate(cell, options.jobs, options.share)
        keep(result, options.output)
        print(_line(result), file=sys.stderr, flush=True)
    print(table(json.loads(options.output.read_text())["targets"]))


def keep(result: Mapping[str, Any], path: Path) -> None:
    """Put a cell's result in the place of the older one, and compute the targets anew."""
    old = json.loads(path.read_text())["cells"] if path.exists() else []
    same = (*SAME, "rule")
    rest = [cell for cell in old if any(cell.get(name) != result.get(name) for name in same)]
    cells = sorted([*rest, result], key=lambda cell: [str(cell.get(name)) for name in same])
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"targets": rows(cells), "cells": cells}, indent=1) + "\n")


def table(targets: Sequence[Mapping[str, Any]]) -> str:
    """The targets in lines of text."""
    lines = []
    for row in targets:
        bound = f"{'>=' if row['least'] else '<='} {row['bound']:g}"
        lines.append(f"{row['words']:<76}{shown(row):>16}  {bound:<8}{row['state'] or '-'}")
    judges = sorted({row["judge"] for row in targets if row["judge"]})
    return "\n".join([*lines, f"judge {', '.join(judges)}"])


def shown(figure: Mapping[str, Any], key: str = "value") -> str:
    """A figure with its standard error; of none, out of how many; a dash where nothing was."""
    value = figure[key]
    if value is None:
        return "-"
    return f"{value:.2f} ± {figure['se']:.2f}" if value else f"0 of {figure['n']:,}"


def _line(result: Mapping[str, Any]) -> str:
    spread = f", spread {result['spread']}" if result.get("spread") else ""
    name = f"{result['portfolio']}, {result['stress']}{spread}, {result['rule']}"
    promoted = shown(result["figures"]["promoted"], "percent")
    return (
        f"{name}: {result['workloads']} workloads, {result['seconds']:.0f} s, "
        f"{promoted} % promoted, judge {result['judge']}"
    )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decision targets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [*(target.name for target in TARGETS), *GROUPS]
    parser.add_argument("--only", nargs="+", choices=names, help="these targets or groups alone")
    parser.add_argument("--share", type=float, default=1.0, help="of each cell's workloads")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)
