"""Monte-Carlo calibration of the quality gate's look levels a(n) = c a n / n_max.

The gate looks several times at growing samples, so each look must spend only a part of the
error. Under a loss of exactly the margin the statistic (D + margin) / (s sqrt(v)) is pivotal:
neither the margin nor the seeds' spread is left in its law, so one run serves every ratio of
the two. ``c`` is the largest factor with P(any look passes) <= a over every length of history,
every pattern of baseline runs that the rules allow, and every level ``a``: alpha/K of one to
eight candidates, and up to 0.25 where the equivalence check passed (gate.py has the rules).
Where the history lies makes no difference, since only its spread counts. A look is one test
however often the judge is called, so the looks are all there is to pass. Rules that stop early
for other reasons only remove passes and are left out.

    python -m benchmarks.decision.calibrate [--paths 400000] [--output FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decision.gate import (
    DESIGNS,
    HISTORIES,
    Array,
    achieved,
    pass_levels,
    shares,
)
from compilegate.domain.judging.design import SCHEDULE

ALPHA = 0.05
# What a candidate may spend: alpha / (K rho) up to 0.25, alpha/K where rho is 1.
LEVELS = (0.25, 0.1, *(ALPHA / k for k in (1, 2, 3, 4, 8)))
SEED = 20_260_101


def factor(levels: Array, n_max: int, level: float) -> float:
    """The c at which exactly the share ``level`` of the trials passes at some look."""
    bars = shares(n_max)
    smallest = (levels[:, : bars.size] / bars).min(axis=1)
    return float(np.quantile(smallest, level) / level)


def scenarios() -> Iterator[tuple[str, int]]:
    """Every design and length of history."""
    return itertools.product(DESIGNS, HISTORIES)


def calibrate(paths: int, seed: int) -> dict[str, Any]:
    """The table: for every n_max the factor, and what it achieves on other draws.

    The factor is that of the worst scenario and level, taken two standard errors low and
    rounded down.
    """
    sure = dict.fromkeys(SCHEDULE, 1.0)
    exact = dict.fromkeys(SCHEDULE, math.inf)
    for number, (design, history) in enumerate(scenarios()):
        rng = np.random.default_rng([seed, number])
        drawn = pass_levels(rng, paths, design=design, history=history)
        for n_max, level in itertools.product(SCHEDULE, LEVELS):
            doubt = 1 - 2 * math.sqrt((1 - level) / level / paths)
            greatest = factor(drawn, n_max, level)
            exact[n_max] = min(exact[n_max], greatest)
            sure[n_max] = min(sure[n_max], greatest * doubt)
        print(f"{design}, {history} past runs", file=sys.stderr, flush=True)
    factors = {n_max: math.floor(100 * c) / 100 for n_max, c in sure.items()}
    worst = _checked(paths, seed, factors)
    rows = [
        {
            "n_max": n_max,
            "c": factors[n_max],
            "c_exact": round(exact[n_max], 4),
            "c_bonferroni": round(1 / float(shares(n_max).sum()), 4),
            **worst[n_max],
        }
        for n_max in SCHEDULE
    ]
    return {"paths": paths, "seed": seed, "looks": SCHEDULE, "factors": rows}


def _checked(paths: int, seed: int, factors: dict[int, float]) -> dict[int, dict[str, Any]]:
    """For every n_max the scenario that spends the largest share of its level, drawn anew."""
    worst: dict[int, dict[str, Any]] = {n_max: {"share": 0.0} for n_max in SCHEDULE}
    for number, (design, history) in enumerate(scenarios()):
        rng = np.random.default_rng([seed, number, 1])
        drawn = pass_levels(rng, paths // 2, design=design, history=history)
        for n_max, level in itertools.product(SCHEDULE, LEVELS):
            share = achieved(drawn, n_max, level, factors[n_max]) / level
            if share > worst[n_max]["share"]:
                worst[n_max] = {
                    "share": round(share, 4),
                    "share_se": round(math.sqrt((1 - level) / level / (paths // 2)), 4),
                    "level": level,
                    "design": design,
                    "history": history,
                }
    return worst


def main() -> None:
    """Calibrate, print progress, write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision.calibrate")
    parser.add_argument("--paths", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("calibration.json"))
    options = parser.parse_args()
    table = calibrate(options.paths, options.seed)
    options.output.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
