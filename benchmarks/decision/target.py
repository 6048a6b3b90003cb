"""How often times to a target prove a speed-up that is not there, by the rule alone, at all looks.

    python -m benchmarks.decision.target [--trials 4000]

Runs of both arms reach the target after lognormal times of the same median, or of one that is
``gain`` times as long for the baseline. A share of the runs misses it. Quality is taken to hold, so
that only this gate may stop a candidate. The bar is ``policy.min_proven_speedup``.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from compilegate.domain.judging.design import looks
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.target import target_problem
from compilegate.domain.judging.whole_job import Agreement, confirm, estimate_whole_job

MEDIAN, TARGET, MOST = 1000.0, 0.9, 12


@dataclass(frozen=True)
class Cell:
    """``spread`` of ln(time) of both arms, the share of runs that misses, evaluations of a run."""

    gain: float
    bar: float
    spread: tuple[float, float]
    missed: float
    evaluations: int


def run_of(rng: random.Random, cell: Cell, order: int, *, mine: bool) -> dict[str, Any]:
    """A full run that ends where the share ``missed`` of the baseline's would not be there yet."""
    spread = cell.spread[mine]
    reach = MEDIAN / (cell.gain if mine else 1.0) * math.exp(spread * rng.gauss(0, 1))
    last = NormalDist().inv_cdf(1 - cell.missed) if cell.missed else 6.0
    wall = MEDIAN * math.exp(cell.spread[False] * last)
    each = wall / cell.evaluations
    before = math.floor(reach / each) * each
    seen = [(at, 0.5) for at in (before,) if 0 < at < wall]
    seen += [(before + each, 0.95)] if before + each <= wall else [(wall, 0.5)]
    return {
        "stage": "quality", "mode": "shadow", "order": order, "seed": order, "metric": 0.95,
        "wall_seconds": wall, "finished": True, "applied": True,
        "evaluations": [[n, value, at] for n, (at, value) in enumerate(seen)],
    }  # fmt: skip


def promotes(rng: random.Random, cell: Cell) -> bool:
    """Whether the rule holds at any look of one trial."""
    arms: dict[str, list[dict[str, Any]]] = {"baseline": [], "recipe": []}
    for n in range(1, MOST + 1):
        for name, made in arms.items():
            made.append(run_of(rng, cell, 2 * n + (name != "baseline"), mine=name != "baseline"))
        if n not in looks(MOST):
            continue
        evidence = read_evidence({
            "schema": 1, "workload": "w", "policy": {
                "quality_runs": "shadow", "min_proven_speedup": cell.bar,
                "min_mean_speedup": max(cell.bar, 1.2), "max_quality_runs": MOST},
            "quality": {"metric": "a", "goal": "maximize", "margin": 0.1, "target": TARGET},
            "runs_remaining": 1000, "full_run_steps": 100,
            "arms": [{"name": name, "runs": made,
                      "overrides": {} if name == "baseline" else {"learning_rate": 1e-3}}
                     for name, made in arms.items()],
        })  # fmt: skip
        (arm,) = evidence.candidates
        seen = confirm(arm, evidence, estimate_whole_job(arm, evidence))
        if seen.agreement is Agreement.CONFIRMED and not target_problem(arm, evidence):
            return True
    return False


CELLS = [
    Cell(gain, bar, spread, missed, evaluations)
    for gain, bar in ((1.0, 1.0), (1.1, 1.1), (1.3, 1.1), (1.5, 1.1))
    for spread in ((0.08, 0.08), (0.2, 0.2), (0.08, 0.24))
    for missed, evaluations in ((0.0, 2000), (0.0, 40), (0.1, 2000), (0.3, 2000))
]


def main() -> None:
    """Print a line per cell: the share of trials in which the rule promotes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--gains", type=float, nargs="*", default=[1.0, 1.1, 1.3, 1.5])
    asked = parser.parse_args()
    trials = asked.trials
    print("| gain | bar | sd of ln(time) | missed | evaluations | promoted, % |")
    print("|---|---|---|---|---|---|")
    for cell in [one for one in CELLS if one.gain in asked.gains]:
        rng = random.Random(f"target {cell}")
        promoted = sum(promotes(rng, cell) for _ in range(trials)) / trials
        spread = " / ".join(f"{one:g}" for one in cell.spread)
        print(
            f"| {cell.gain:g} | {cell.bar:g} | {spread} | {cell.missed:g} | {cell.evaluations} "
            f"| {100 * promoted:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
