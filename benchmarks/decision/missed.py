"""Where good candidates are missed, and where an oracle's saving goes: the reasons behind a target.

    python -m benchmarks.decision.missed [--workloads 6000]

Of the mixed fleet in hybrid mode, by the workloads that ``targets`` has played and kept; what is
missing is played first.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.decision.cells import Cell, drawn
from benchmarks.decision.played import played
from benchmarks.decision.rules import Outcome
from benchmarks.decision.targets import FLEET, RULE, SEED
from benchmarks.decision.truth import PROMOTE, REJECT, USD_PER_DEVICE_HOUR, Workload
from benchmarks.decision.world import best_hours, usd

Pair = tuple[Workload, Outcome]


def pairs(cell: Cell) -> list[Pair]:
    """Every workload with what the judge made of it."""
    own = [outcome for outcome in played(cell, 2) if outcome.rule == RULE]
    return [(drawn(cell, index), outcome) for index, outcome in enumerate(own)]


def missed_by_runs(of: Sequence[Pair]) -> Iterator[tuple[int, int, float, float]]:
    """Production runs left; good workloads; of these missed, in %; in points of all good ones."""
    good = [(workload.runs_left, outcome) for workload, outcome in of if outcome.has_good]
    for left in sorted({runs for runs, _ in good}):
        those = [outcome for runs, outcome in good if runs == left]
        lost = sum(not one.promoted or one.promoted_bad for one in those)
        yield left, len(those), 100 * lost / len(those), 100 * lost / len(good)


def saving_lost(of: Sequence[Pair]) -> dict[str, float]:
    """In % of what the oracle saves, by the cause."""
    lost: Counter[str] = Counter()
    for workload, outcome in of:
        dedicated = outcome.gpu_hours * USD_PER_DEVICE_HOUR
        lost["extra runs and blocks of the trial"] += dedicated
        lost[_cause(workload, outcome)] += outcome.oracle_usd - outcome.saved_usd - dedicated
    total = math.fsum(outcome.oracle_usd for _, outcome in of)
    return {cause: 100 * value / total for cause, value in lost.most_common()}


def _cause(workload: Workload, outcome: Outcome) -> str:
    fastest = max(
        (workload.speedup(arm) for arm in workload.candidates if arm.loss < workload.margin),
        default=0.0,
    )
    if outcome.promoted:
        reverted = outcome.probation == "revert"
        return "turned off again" if reverted else "turned on later than at once, or another arm"
    if outcome.has_good:
        return "good ones missed"
    if fastest >= PROMOTE:
        return "fast ones that lose part of a margin, not turned on"
    between = f"speed-ups of {REJECT:g} to {PROMOTE:g}, which policy does not turn on"
    return between if fastest >= REJECT else "speed-ups below that"


def knowing(of: Sequence[Pair]) -> dict[str, float]:
    """What would be saved by knowing the truth and keeping the policy, in % of the oracle's."""
    total = math.fsum(outcome.oracle_usd for _, outcome in of)
    good = [usd(one, best_hours(one, one.is_good)) for one, _ in of]
    fast = [
        usd(one, best_hours(one, lambda arm, one=one: one.speedup(arm) >= PROMOTE))  # type: ignore[misc]
        for one, _ in of
    ]
    return {"good arms only": 100 * math.fsum(good) / total,
            "every arm fast enough that loses less than a margin": 100 * math.fsum(fast) / total,
            }  # fmt: skip


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision.missed")
    parser.add_argument("--workloads", type=int, default=FLEET)
    options = parser.parse_args()
    of = pairs(Cell("mixed", workloads=options.workloads, seed=SEED, rules=(RULE,)))
    print("| runs left | good | missed, % | points of all |\n| --- | --- | --- | --- |")
    for left, good, share, points in missed_by_runs(of):
        print(f"| {left} | {good} | {share:.0f} | {points:.1f} |")
    for title, rows in (("saving lost", saving_lost(of)), ("knowing the truth", knowing(of))):
        print(f"\n| {title} | % of an oracle's |\n| --- | --- |")
        for name, value in rows.items():
            print(f"| {name} | {np.round(value, 1):.1f} |")


if __name__ == "__main__":
    main()
