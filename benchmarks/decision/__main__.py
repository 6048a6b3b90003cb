"""How often does the judge err, what does it detect, what does it cost?

    python -m benchmarks.decision [--quick | --study] [--workloads N] [--mode hybrid ...]
        [--portfolio mixed ...] [--stress none ...] [--candidates 2] [--jobs 2] [--seed 1]

    python -m benchmarks.decision targets [...]
    python -m benchmarks.decision --document

Tables are printed; results.json keeps the latest result of every cell. The second form computes
what the judge has to reach (targets.py). The third simulates nothing: it writes the kept results
into docs/how-it-decides.md and benchmarks/decision/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.decision import targets
from benchmarks.decision.cells import Cell, run
from benchmarks.decision.document import STRESSES as SHOWN
from benchmarks.decision.document import write
from benchmarks.decision.portfolio import RECIPES
from benchmarks.decision.probation_document import write as write_probation
from benchmarks.decision.rules import MODES, NAIVE
from benchmarks.decision.targets_document import write as write_targets
from benchmarks.decision.truth import STRESSES

RESULTS = Path(__file__).with_name("results.json")
QUICK_RESULTS = Path(__file__).parents[2] / "build" / "decision-quick.json"
QUICK = 300
ROWS = (
    ("false promotes, % of all", "false_promotes"),
    ("good arm missed, %", "good_missed"),
    ("good arm missed where provable, %", "provable_missed"),
    ("good arm rejected, %", "good_rejected"),
    ("wrong reverts, % of clean promotions", "wrong_reverts"),
    ("right reverts (2 margins, spread <= margin), %", "right_reverts"),
    ("bad promotions reverted, %", "bad_reverted"),
    ("delay of a right revert, runs", "delay"),
    ("speed-up below the 95 % interval, % of promotes", "true_below_interval"),
    ("speed-up above the 95 % interval, % of promotes", "true_above_interval"),
    ("width of the interval, logarithm", "interval_width"),
    ("dedicated GPU-hours, % of the article's", "gpu_hours"),
    ("- with bad production runs made again", "gpu_hours_redone"),
    ("speed probe, % of one baseline job", "probe_of_one_job"),
    ("dedicated jobs a workload", "jobs"),
    ("production runs by a bad arm", "bad_runs"),
    ("weeks to the decision", "weeks"),
    ("net saving, % of an oracle's", "net_saving"),
    ("- with bad production runs made again", "net_saving_redone"),
)


def main() -> None:
    """Simulate, print, keep."""
    if sys.argv[1:2] == ["targets"]:
        targets.main(sys.argv[2:])
        return
    options = _options()
    if options.document:
        write()
        write_probation()
        write_targets()
        return
    for cell in study(options) if options.study else chosen(options):
        began = time.monotonic()
        result = run(cell, options.jobs, _progress(cell))
        seconds = time.monotonic() - began
        print(f"\r{_name(cell)}: {cell.workloads} workloads, {seconds:.0f} s", file=sys.stderr)
        keep(result, options.output or (QUICK_RESULTS if options.quick else RESULTS))
        print(table(result), flush=True)


def study(options: argparse.Namespace) -> list[Cell]:
    """The cells that the documentation quotes."""
    n, seed = options.workloads or 3000, options.seed
    cells = [Cell(workloads=n, seed=seed, rules=(*MODES, *NAIVE))]
    for portfolio in ("boundary_quality", "boundary_speed", "boundary", "all_good", "regressing"):
        cells.append(Cell(portfolio, workloads=n, seed=seed, rules=(*MODES, *NAIVE)))
    for portfolio in ("mixed", "boundary_quality"):  # as EVALUATE runs trials today
        cells.append(
            Cell(portfolio, workloads=n, seed=seed, rules=("shadow",), production_beside=False)
        )
    for stress in list(SHOWN)[1:]:
        for portfolio in ("boundary_quality", "boundary_speed", "mixed"):
            cells.append(Cell(portfolio, stress, workloads=n, seed=seed, rules=("hybrid",)))
    for k in (1, 3):
        rules = ("hybrid",)
        cells.append(Cell("boundary_quality", candidates=k, workloads=n, seed=seed, rules=rules))
    return cells


def chosen(options: argparse.Namespace) -> list[Cell]:
    """The cells of the command line."""
    rules = tuple(options.mode) + (() if options.judge_only else NAIVE)
    return [
        Cell(
            portfolio=portfolio,
            stress=stress,
            candidates=options.candidates,
            workloads=QUICK if options.quick else options.workloads or QUICK,
            seed=options.seed,
            rules=rules,
            max_runs=options.max_runs,
            production_beside=not options.nothing_beside,
        )
        for portfolio in options.portfolio
        for stress in options.stress
    ]


def keep(result: dict[str, Any], path: Path) -> None:
    """Put a cell's result in the place of the older one, leaving the others."""
    old = json.loads(path.read_text())["cells"] if path.exists() else []
    same = ("portfolio", "stress", "candidates", "max_runs", "production_beside")
    path.parent.mkdir(exist_ok=True)
    rest = [cell for cell in old if any(cell[name] != result[name] for name in same)]
    cells = sorted([*rest, result], key=lambda cell: [str(cell[name]) for name in same])
    path.write_text(json.dumps({"cells": cells}, indent=1) + "\n")


def table(result: Mapping[str, Any]) -> str:
    """One cell: a row per characteristic, a column per rule."""
    rules = result["rules"]
    head = f"{result['portfolio']}, stress {result['stress']}, {result['candidates']} candidates"
    lines = [f"\n{head}, {result['workloads']} workloads"]
    lines.append(_line("", rules))
    lines.append(_line("verdicts, % p/s/i/other", [_verdicts(rule) for rule in rules.values()]))
    for words, key in ROWS:
        lines.append(_line(words, [_figure(rule[key]) for rule in rules.values()]))
    return "\n".join(lines)


def _line(words: str, cells: Any) -> str:
    return f"{words:<47}" + "".join(f"{cell:>18}" for cell in cells)


def _verdicts(rule: Mapping[str, Any]) -> str:
    counts = rule["verdicts"]
    total = sum(counts.values())
    named = [counts.get(name, 0) for name in ("promote", "stay_off", "inconclusive")]
    return "/".join(f"{100 * n / total:.0f}" for n in (*named, total - sum(named)))


def _figure(figure: Mapping[str, Any]) -> str:
    if "median" in figure:
        return "-" if figure["median"] is None else f"{figure['median']:g}"
    value = figure.get("percent", figure.get("mean"))
    if value is None:
        return "-"
    spread = figure["se"]
    return f"{value:.2f}" if spread is None else f"{value:.2f} +- {spread:.2f}"


def _name(cell: Cell) -> str:
    return f"{cell.portfolio}, stress {cell.stress}, {cell.candidates} candidates"


def _progress(cell: Cell) -> Any:
    def tick(done: int) -> None:
        if done % 10 == 0 or done == cell.workloads:
            print(f"\r{_name(cell)}: {done}/{cell.workloads}", end="", file=sys.stderr, flush=True)

    return tick


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decision",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--quick", action="store_true", help=f"{QUICK} workloads, results.json left alone")
    add("--study", action="store_true", help="every cell that is quoted: over an hour on 2 cores")
    add("--document", action="store_true", help="write the kept results into the documentation")
    add("--workloads", type=int, help="workloads a cell")
    add("--mode", nargs="+", choices=MODES, default=["hybrid"])
    add("--portfolio", nargs="+", choices=list(RECIPES), default=["mixed"])
    add("--stress", nargs="+", choices=list(STRESSES), default=["none"])
    add("--candidates", type=int, default=2)
    add("--max-runs", type=int, help="most quality runs of a candidate")
    add("--nothing-beside", action="store_true", help="production makes no runs during shadow")
    add("--judge-only", action="store_true", help="leave the naive procedures out")
    add("--jobs", type=int, default=2)
    add("--seed", type=int, default=1)
    add("--output", type=Path, help="results.json, or one under build for --quick")
    return parser.parse_args()


if __name__ == "__main__":
    main()
