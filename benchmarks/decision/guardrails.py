"""What guardrails do to a trial: how often it promotes, and gives up as worse, with how many runs.

The first metric and the guardrails of one fast candidate, normal and equally correlated from run
to run, through the quality gate's looks (gate_curve.py) as the judge takes them together
(compilegate/domain/judging/quality.py): promoted where all hold at one look, given up where any
looks worse or futile.

    python -m benchmarks.decision.guardrails [--paths 20000]

The table of README.md is made from the file that it writes.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.decision.gate import Array, Sample, baseline_runs, statistic
from benchmarks.decision.gate_curve import HISTORY, MODES, answer_of
from benchmarks.decision.provenance import judge_name
from compilegate.domain.judging.design import looks
from compilegate.domain.judging.monitor import FALSE_ALARM, cusum_threshold
from compilegate.domain.workload.model import Policy

RESULTS = Path(__file__).with_name("guardrails.json")
SEED = 11
MODE = "hybrid"
SPREADS = (0.4, 0.7, 1.0)
CORRELATIONS = (0.0, 0.8)
# Losses of the first metric and of each guardrail, in margins.
WORLDS = {
    "one metric": (0.0,),
    "one metric, which loses a margin": (1.0,),
    "three guardrails": (0.0, 0.0, 0.0, 0.0),
    "three guardrails, one loses a margin": (0.0, 0.0, 0.0, 1.0),
    "three guardrails, each loses a margin": (0.0, 1.0, 1.0, 1.0),
    "three guardrails, one loses half a margin": (0.0, 0.0, 0.0, 0.5),
}


@dataclass(frozen=True)
class Trials:
    """Of many trials of one candidate: per cent promoted and given up as worse, and mean runs.

    ``alarms`` are per cent of probations with an alarm in the twelve runs, before it is checked.
    """

    promoted: float
    worse: float
    runs: float
    alarms: float


def trials(
    losses: tuple[float, ...], spread: float, correlation: float, *, paths: int, mode: str = MODE
) -> Trials:
    """What becomes of a candidate that loses so many margins; ``spread`` in margins."""
    n_max, design, level = MODES[mode]
    rng, margin = np.random.default_rng(SEED), 1 / spread
    many = len(losses)
    ours, theirs, past = (
        _runs(rng, many, paths, runs, correlation) for runs in (n_max, n_max, HISTORY)
    )
    is_open = np.ones(paths, dtype=bool)
    promoted, worse = np.zeros((2, paths), dtype=bool)
    runs = np.full(paths, float(n_max))
    for look, n in enumerate(looks(n_max)):
        beside = baseline_runs(design, n, look)
        held, lost, futile = np.ones((1, paths), dtype=bool)[0], *np.zeros((2, paths), dtype=bool)
        for index, loss in enumerate(losses):
            samples = (ours[index, :, :n], theirs[index, :, :beside], past[index])
            compared = statistic(*map(Sample.of, samples))
            if compared is None:
                held &= False
                continue
            answer = answer_of(
                compared, loss * margin, margin, n=n, beside=beside, n_max=n_max, level=level,
                metrics=many,
            )  # fmt: skip
            held &= answer.held
            lost |= answer.worse & ~answer.held
            futile |= answer.futile & ~answer.held
        ends = is_open & (held | lost | futile)
        promoted |= ends & held
        worse |= ends & lost
        runs[ends] = n
        is_open &= ~ends
    alarmed = _alarmed(rng, losses, spread, correlation, paths)
    percent = (round(100 * float(one.mean()), 3) for one in (promoted, worse, alarmed))
    promoted_percent, worse_percent, alarms = percent
    return Trials(promoted_percent, worse_percent, round(float(runs.mean()), 2), alarms)


def _alarmed(
    rng: np.random.Generator,
    losses: tuple[float, ...],
    spread: float,
    correlation: float,
    paths: int,
) -> Array:
    """The probations in which the sum of any metric exceeds its limit, the reference being known.

    Everything is in margins.
    """
    watched = Policy.probation_runs
    h = cusum_threshold(1.0, spread, runs=watched, error=FALSE_ALARM / len(losses))
    drawn = spread * _runs(rng, len(losses), paths, watched, correlation)
    values = drawn - np.array(losses)[:, None, None]
    total, alarmed = np.zeros(values.shape[:2]), np.zeros(paths, dtype=bool)
    for run in range(watched):
        total = np.maximum(0.0, total - 0.5 - values[:, :, run])
        alarmed |= (total > h * spread).any(axis=0)
    return np.asarray(alarmed)


def _runs(
    rng: np.random.Generator, metrics: int, paths: int, runs: int, correlation: float
) -> Array:
    """Metrics, trials, runs: standard normal, with this correlation between metrics of one run."""
    shared = rng.standard_normal((paths, runs))
    own = rng.standard_normal((metrics, paths, runs))
    return np.asarray(math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own)


def main() -> None:
    """Simulate every cell and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision.guardrails")
    parser.add_argument("--paths", type=int, default=20_000)
    paths = parser.parse_args().paths
    cells = [
        {"world": world, "correlation": correlation, "spread": spread,
         **asdict(trials(losses, spread, correlation, paths=paths))}
        for world, losses in WORLDS.items()
        for correlation in CORRELATIONS[: len(losses)]
        for spread in SPREADS
    ]  # fmt: skip
    kept = {"paths": paths, "seed": SEED, "judge": judge_name(), "cells": cells}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
