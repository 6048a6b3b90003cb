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
import numpy.typing as npt
from scipy.special import ndtr, stdtr, stdtrit

from benchmarks.decision.gate import Sample, Statistic, baseline_runs, statistic
from benchmarks.decision.provenance import judge_name
from compilegate.domain.judging.design import GREATEST_LEVEL, looks, spent
from compilegate.domain.judging.quality import BEYOND_DOUBT, FUTILE, WORSE_LEVEL

RESULTS = Path(__file__).with_name("gate_curve.json")
ALPHA = 0.05
SEED = 9
Mask = npt.NDArray[np.bool_]
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


@dataclass(frozen=True)
class Answer:
    """What one look says of every trial; where a metric holds the other two do not count."""

    held: Mask
    worse: Mask
    futile: Mask


def answer_of(
    compared: Statistic,
    loss: float,
    margin: float,
    *,
    n: int,
    beside: int,
    n_max: int,
    level: float,
    metrics: int = 1,
) -> Answer:
    """The look at ``n`` runs, ``beside`` the baseline's; loss and margin in standard deviations."""
    difference = compared.difference - loss
    lost = max(spent(n, n_max, WORSE_LEVEL), BEYOND_DOUBT) / metrics
    worse = stdtr(compared.df, difference / compared.error) <= lost
    # The chance that the last look passes on this trend.
    shrinks = math.sqrt((1 / n_max + 1 / max(beside, n_max)) / (1 / n + 1 / beside))
    bar = stdtrit(compared.df + 2 * (n_max - n), 1 - spent(n_max, n_max, level))
    chance = ndtr((difference * n / n_max + margin) / (compared.error * shrinks) - bar)
    return Answer(
        held=stdtr(compared.df, -(difference + margin) / compared.error) <= spent(n, n_max, level),
        worse=worse & (difference <= -margin / 2),
        futile=(chance < FUTILE) | (n == n_max),
    )


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
        answer = answer_of(
            compared, loss * margin, margin, n=n, beside=baseline.size, n_max=n_max, level=promoting
        )
        ends = is_open & (answer.held | answer.worse | answer.futile)
        passes |= ends & answer.held
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
