"""What the quality gate's looks spend in the designs that trials really have.

calibrate.py finds the look constants for as many baseline runs as candidate runs and for a fixed
weight of history. A trial may have fewer baseline runs, and history that contradicts them counts
for less (noninferiority.py). Here the gate's own constants and weights meet these designs, at a
loss of exactly the margin; giving up, which only removes passes, is left out.

    python -m benchmarks.decision.levels [--paths 400000] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr

from benchmarks.decision.calibrate import HISTORIES, Array, Sample
from compilegate.domain.judging.looks import looks, spent
from compilegate.domain.judging.noninferiority import CONFLICT, KAPPA, history_weight

LEVELS_FILE = Path(__file__).with_name("levels.json")
ALPHA = 0.05
CANDIDATES = (1, 2, 3, 4, 8)
LAST_LOOKS = (12, 36)
SEED = 5
# How many baseline runs of the same weeks a trial has when the candidate has n.
DESIGNS = {
    "as many baseline runs": "production takes turns: hybrid and canary",
    "one more every round": "production goes on beside extra runs: shadow",
    "history makes up for some": "a trial that pays for its baseline runs: EVALUATE",
    "one in all": "the fewest that can promote",
}


def baseline_runs(design: str, n: int, look: int, history: int) -> int:
    """Baseline runs of the same weeks at look ``look``, the first being 0."""
    if design == "as many baseline runs":
        return n
    if design == "one more every round":
        return look + 1
    if design == "history makes up for some":
        return max(math.ceil(n - history_weight(history)), 1)
    return 1


def pass_levels(
    rng: np.random.Generator, paths: int, *, design: str, history: int, n_max: int
) -> Array:
    """P(t_df > statistic) of every path (row) at every look (column), at a loss of the margin."""
    candidate, baseline, past = (Sample(rng, paths) for _ in range(3))
    past.grow(history)
    past.mean += KAPPA * rng.standard_normal(paths)
    columns = []
    for look, n in enumerate(looks(n_max)):
        candidate.grow(n)
        baseline.grow(baseline_runs(design, n, look, history))
        columns.append(_level(candidate, baseline, past))
    return np.column_stack(columns)


def _level(candidate: Sample, baseline: Sample, past: Sample) -> Array:
    samples = (candidate, baseline, past)
    df = sum(max(sample.size - 1, 0) for sample in samples)
    if df < 2:
        return np.ones(candidate.mean.size)
    pooled = np.asarray(sum(sample.squares for sample in samples)) / df
    variance = np.maximum(pooled, candidate.squares / (candidate.size - 1))
    weight = _history_weights(baseline, past, variance)
    reference = (weight * past.mean + baseline.size * baseline.mean) / (weight + baseline.size)
    error = np.sqrt(variance * (1 / candidate.size + 1 / (weight + baseline.size)))
    return np.asarray(stdtr(df, (reference - candidate.mean) / error))


def _history_weights(baseline: Sample, past: Sample, variance: Array) -> Array:
    """w_H of every path, with the rule for history that contradicts today's baseline."""
    if not past.size:
        return np.zeros(variance.size)
    shift = (baseline.mean - past.mean) ** 2 / variance
    expected = 1 / past.size + 1 / baseline.size + KAPPA**2
    drift = np.where(shift <= CONFLICT**2 * expected, KAPPA**2, shift)
    return np.asarray(1 / (1 / past.size + drift))


def achieved(levels: Array, n_max: int, level: float) -> float:
    """Share of paths that pass at some look."""
    bars = np.array([spent(n, n_max, level) for n in looks(n_max)])
    return float((levels <= bars).any(axis=1).mean())


def achieved_by_bonferroni(levels: Array, n_max: int, level: float) -> float:
    """The same with levels that add up to ``level``."""
    bars = np.sqrt(looks(n_max))
    return float((levels <= level * bars / bars.sum()).any(axis=1).mean())


def measure(paths: int, seed: int) -> dict[str, Any]:
    """For every design and number of candidates the worst history and last look."""
    rows = []
    for design in DESIGNS:
        errors: dict[int, list[float]] = {k: [] for k in CANDIDATES}
        plain: dict[int, list[float]] = {k: [] for k in CANDIDATES}
        for n_max in LAST_LOOKS:
            for history in HISTORIES:
                rng = np.random.default_rng([seed, n_max, history, len(design)])
                passed = pass_levels(rng, paths, design=design, history=history, n_max=n_max)
                for k in CANDIDATES:
                    errors[k].append(achieved(passed, n_max, ALPHA / k))
                    plain[k].append(achieved_by_bonferroni(passed, n_max, ALPHA / k))
        rows += [_row(design, k, (max(errors[k]), max(plain[k])), paths) for k in CANDIDATES]
        print(f"{design}: done", file=sys.stderr, flush=True)
    return {"paths": paths, "seed": seed, "alpha": ALPHA, "rows": rows}


def _row(design: str, candidates: int, errors: tuple[float, float], paths: int) -> dict[str, Any]:
    level = ALPHA / candidates
    return {
        "design": design,
        "candidates": candidates,
        "level": round(level, 6),
        "error": round(errors[0], 6),
        "error_bonferroni": round(errors[1], 6),
        "se": round(math.sqrt(level * (1 - level) / paths), 6),
    }


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision.levels")
    parser.add_argument("--paths", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--output", type=Path, default=LEVELS_FILE)
    options = parser.parse_args()
    table = measure(options.paths, options.seed)
    options.output.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
