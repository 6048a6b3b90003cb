"""The quality gate's operating characteristic: how often it passes what loses so much.

One fast candidate; the gate at every look, with what ends a candidate early there: a proven loss
and futility (compilegate/domain/judging/quality.py).

    python -m benchmarks.decision.gate_curve [--paths 20000]

The table in docs/how-it-decides.md is made from the file that it writes.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from benchmarks.decision.gate import Sample, baseline_runs, statistic
from benchmarks.decision.provenance import judge_name
from compilegate.domain.judging.design import GREATEST_LEVEL, looks, spent
from compilegate.domain.judging.quality import BEYOND_DOUBT, FUTILE

RESULTS = Path(__file__).with_name("gate_curve.json")
ALPHA = 0.05
SEED = 9
HISTORY = 5
# True losses and spreads, both in margins.
LOSSES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
SPREADS = (0.2, 0.4, 0.7, 1.0, 1.5)
PASSED = ", check passed"
# Who makes the runs: the last look, the baseline runs beside the candidate's (gate.DESIGNS), and
# the level that promotes: alpha, or the greatest where the equivalence check passed.
MODES = {
    f"{mode}{words}": (n_max, design, level)
    for mode, n_max, design in (
        ("hybrid", 96, "as many baseline runs"),
        ("shadow", 12, "one more every round"),
    )
    for words, level in (("", ALPHA), (PASSED, GREATEST_LEVEL))
}


@dataclass(frozen=True)
class Passed:
    """Of many trials of one candidate: per cent that pass, and mean number of its runs."""

    percent: float
    runs: float


def passed(loss: float, spread: float, *, mode: str, paths: int, history: int = HISTORY) -> Passed:
    """What the gate makes of a candidate that loses ``loss`` margins; ``spread`` in margins."""
    n_max, design, promoting = MODES[mode]
    margin = 1 / spread  # everything is in units of a run's standard deviation
    rng = np.random.default_rng(SEED)
    candidate, baseline, past = (Sample(rng, paths) for _ in range(3))
    past.grow(history)
    is_open, passes = np.ones(paths, dtype=bool), np.zeros(paths, dtype=bool)
    runs = np.full(paths, float(n_max))
    for look, n in enumerate(looks(n_max)):
        candidate.grow(n)
        baseline.grow(baseline_runs(design, n, look))
        compared = statistic(candidate, baseline, past)
        if compared is None:
            continue
        level, last_level = spent(n, n_max, promoting), spent(n_max, n_max, promoting)
        difference = compared.difference - loss * margin
        held = stdtr(compared.df, -(difference + margin) / compared.error) <= level
        lost = max(spent(n, n_max, ALPHA), BEYOND_DOUBT)
        worse = stdtr(compared.df, difference / compared.error) <= lost
        # The chance that the last look passes on this trend.
        last_baseline = max(baseline.size, n_max)
        shrinks = math.sqrt((1 / n_max + 1 / last_baseline) / (1 / n + 1 / baseline.size))
        bar = stdtrit(compared.df + 2 * (n_max - n), 1 - last_level)
        chance = ndtr((difference * n / n_max + margin) / (compared.error * shrinks) - bar)
        ends = is_open & (held | (worse & (difference <= -margin / 2)) | (chance < FUTILE))
        passes |= ends & held
        runs[ends] = n
        is_open &= ~ends
    percent, made = 100 * float(passes.mean()), float(runs.mean())
    return Passed(round(percent, 3), round(made, 2))


def main() -> None:
    """Simulate every point and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision.gate_curve")
    parser.add_argument("--paths", type=int, default=20_000)
    paths = parser.parse_args().paths
    cells = [
        {"mode": mode, "loss": loss, "spread": spread,
         **asdict(passed(loss, spread, mode=mode, paths=paths))}
        for mode in MODES
        for loss in LOSSES
        for spread in SPREADS
    ]  # fmt: skip
    kept = {"paths": paths, "seed": SEED, "judge": judge_name(), "cells": cells}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
