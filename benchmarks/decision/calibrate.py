"""Monte-Carlo calibration of the quality gate's look levels a(n) = c (alpha/K) sqrt(n / n_max).

The gate looks several times at growing samples, so each look must spend only a part of the
error. Under a loss of exactly the margin the statistic (D + margin) / (s sqrt(v)) is pivotal:
neither the margin nor the seeds' spread is left in its law, so one run serves every ratio of
the two. ``c`` is the largest factor with P(any look passes) <= alpha/K for every history size.
Rules that stop early for other reasons only remove passes and are left out of ``c``; the check
puts the rule that stops losers back in, at each ratio of spread to margin.

Samples enter through their sufficient statistics, which are drawn directly: a sum of k normal
seeds is N(0, k), their squares about their mean are chi-square with k - 1 degrees of freedom.

    python -m benchmarks.decision.calibrate [--paths 400000] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

Array = npt.NDArray[np.float64]

LOOKS = (2, 3, 5, 8, 12, 18, 24, 36)
HISTORIES = (0, 3, 5, 10, 20)
LEVELS = (0.05, 0.025, 0.0167)
RATIOS = (0.2, 0.4, 0.6, 1.0, 1.5, 2.0)
KAPPA = 0.5  # drift allowed between history and now, in sd of a seed
FAIL_LEVEL = 0.05
SEED = 20_260_101


@dataclass(frozen=True)
class Nulls:
    """One path per row, one look per column, in units of a seed's sd, candidate centred at 0."""

    difference: Array  # candidate mean - reference mean, the true loss taken out
    error: Array  # s sqrt(v)
    df: Array


class Sample:
    """Mean and squares of a sample that grows, one entry per path."""

    def __init__(self, rng: np.random.Generator, paths: int) -> None:
        self._rng = rng
        self.size = 0
        self.mean = np.zeros(paths)
        self.squares = np.zeros(paths)

    def grow(self, size: int) -> None:
        """Add standard normal runs until there are ``size``."""
        more = size - self.size
        if more <= 0:
            return
        mean = self._rng.standard_normal(self.mean.size) / math.sqrt(more)
        squares = self._rng.chisquare(more - 1, self.mean.size) if more > 1 else 0.0
        apart = mean - self.mean
        self.squares += squares + apart**2 * self.size * more / size
        self.mean += apart * more / size
        self.size = size


def nulls(
    rng: np.random.Generator, paths: int, history: int, *, drift: float = KAPPA, extra: int = 0
) -> Nulls:
    """Draw the gate's statistics at every look; ``extra`` baseline runs beside n candidate runs.

    The history's mean is off by N(0, drift^2).
    """
    candidate, baseline, past = (Sample(rng, paths) for _ in range(3))
    past.grow(history)
    past.mean += drift * rng.standard_normal(paths)
    columns = []
    for n in LOOKS:
        candidate.grow(n)
        baseline.grow(n + extra)
        columns.append(_statistic(candidate, baseline, past))
    return Nulls(
        difference=np.column_stack([column[0] for column in columns]),
        error=np.column_stack([column[1] for column in columns]),
        df=np.array([column[2] for column in columns]),
    )


def _statistic(candidate: Sample, baseline: Sample, past: Sample) -> tuple[Array, Array, float]:
    weight_past = 1 / (1 / past.size + KAPPA**2) if past.size else 0.0
    weight = weight_past + baseline.size
    reference = (weight_past * past.mean + baseline.size * baseline.mean) / weight
    df = sum(max(sample.size - 1, 0) for sample in (candidate, baseline, past))
    pooled = (candidate.squares + baseline.squares + past.squares) / df
    variance = np.maximum(pooled, candidate.squares / (candidate.size - 1))
    error = np.sqrt(variance * (1 / candidate.size + 1 / weight))
    return candidate.mean - reference, error, df


def pass_levels(drawn: Nulls) -> Array:
    """P(t_df > statistic) of every path and look: the gate passes where it is small enough."""
    return np.column_stack(
        [stdtr(df, -drawn.difference[:, i] / drawn.error[:, i]) for i, df in enumerate(drawn.df)]
    )


def spending(n_max: int) -> Array:
    """sqrt(n / n_max) for the looks up to ``n_max``."""
    return np.sqrt([n / n_max for n in LOOKS if n <= n_max])


def factor(levels: Array, n_max: int, alpha: float) -> float:
    """The c at which exactly the share ``alpha`` of the paths passes at some look."""
    shares = spending(n_max)
    smallest = (levels[:, : shares.size] / shares).min(axis=1)
    return float(np.quantile(smallest, alpha) / alpha)


def achieved(levels: Array, n_max: int, alpha: float, c: float) -> float:
    """Share of paths that pass at some look with the factor ``c``."""
    shares = spending(n_max)
    return float((levels[:, : shares.size] <= c * alpha * shares).any(axis=1).mean())


def achieved_with_stops(drawn: Nulls, n_max: int, alpha: float, c: float, ratio: float) -> float:
    """The same where a loser is stopped at its look; ``ratio`` is seed sd over margin."""
    shares = spending(n_max)
    open_paths = np.ones(len(drawn.difference), dtype=bool)
    passed = np.zeros_like(open_paths)
    for i, share in enumerate(shares):
        error, df = drawn.error[:, i], drawn.df[i]
        level = stdtr(df, -drawn.difference[:, i] / error)
        worse = stdtr(df, (drawn.difference[:, i] - 1 / ratio) / error)
        now = open_paths & (level <= c * alpha * share)
        passed |= now
        open_paths &= ~now & (worse > c * FAIL_LEVEL * share)
    return float(passed.mean())


def calibrate(paths: int, seed: int) -> dict[str, Any]:
    """The table: for every n_max and level the factor and what it achieves.

    The factor is taken two standard errors low and rounded down.
    """
    rng = np.random.default_rng(seed)
    draws = {n0: pass_levels(nulls(rng, paths, n0)) for n0 in HISTORIES}
    checks = {n0: nulls(rng, paths, n0) for n0 in HISTORIES}
    check_levels = {n0: pass_levels(drawn) for n0, drawn in checks.items()}
    rows = []
    for n_max in LOOKS:
        for alpha in LEVELS:
            exact = min(factor(levels, n_max, alpha) for levels in draws.values())
            doubt = math.sqrt(alpha * (1 - alpha) / paths)
            sure = min(factor(x, n_max, alpha - 2 * doubt) for x in draws.values())
            sure *= 1 - 2 * doubt / alpha
            c = min(1.0, math.floor(sure * 100) / 100)
            errors = {n0: achieved(drawn, n_max, alpha, c) for n0, drawn in check_levels.items()}
            worst = max(errors, key=lambda n0: errors[n0])
            rows.append(
                {
                    "n_max": n_max,
                    "level": alpha,
                    "c": c,
                    "c_exact": round(exact, 4),
                    "c_bonferroni": round(1 / float(spending(n_max).sum()), 4),
                    "error": round(errors[worst], 5),
                    "error_se": round(doubt, 5),
                    "worst_history": worst,
                    "error_with_stops": round(_worst_stopped(checks, n_max, alpha, c), 5),
                }
            )
            print(rows[-1], file=sys.stderr, flush=True)
    return {"paths": paths, "seed": seed, "looks": LOOKS, "kappa": KAPPA, "factors": rows}


def _worst_stopped(checks: dict[int, Nulls], n_max: int, alpha: float, c: float) -> float:
    few = {n0: _first(drawn, 50_000) for n0, drawn in checks.items()}
    return max(
        achieved_with_stops(drawn, n_max, alpha, c, ratio)
        for drawn in few.values()
        for ratio in RATIOS
    )


def _first(drawn: Nulls, paths: int) -> Nulls:
    return Nulls(drawn.difference[:paths], drawn.error[:paths], drawn.df)


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
