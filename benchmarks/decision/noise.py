"""How a final metric varies from run to run, in units of its sd: shapes, nights, drift.

Every shape has mean 0 and variance 1, so that a stress changes the shape alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from benchmarks.decision.truth import Stress, correlated

Values = npt.NDArray[np.float64]
# A worse basin: so many runs end in it; so much of the variance lies between it and the better.
BASIN_SHARE, BETWEEN_BASINS = 0.2, 0.75
# A collapsed run falls by so many sd.
COLLAPSE = (5.0, 10.0)
LEAST_EXAMPLES = 30


def _student(df: int) -> Callable[[np.random.Generator, int], Values]:
    return lambda rng, size: rng.standard_t(df, size) * math.sqrt((df - 2) / df)


def _skewed(rng: np.random.Generator, size: int) -> Values:
    """Mirrored gamma of shape 2: skewness -1.41, to the bad side."""
    return (2.0 - rng.gamma(2.0, 1.0, size)) / math.sqrt(2.0)


def _bimodal(rng: np.random.Generator, size: int) -> Values:
    """Two basins, sqrt(0.75 / (0.2 x 0.8)) = 2.2 sd apart and each 0.5 sd wide."""
    apart = math.sqrt(BETWEEN_BASINS / (BASIN_SHARE * (1 - BASIN_SHARE)))
    worse = rng.random(size) < BASIN_SHARE
    within = math.sqrt(1 - BETWEEN_BASINS) * rng.standard_normal(size)
    return np.asarray(apart * (BASIN_SHARE - worse) + within, dtype=np.float64)


SHAPES: Mapping[str, Callable[[np.random.Generator, int], Values]] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "t5": _student(5),
    "t3": _student(3),
    "skew": _skewed,
    "bimodal": _bimodal,
}
BINOMIAL = "binomial"


def noise(rng: np.random.Generator, size: int, stress: Stress) -> Values:
    """Deviations of so many runs; a binomial metric has none of its own (see ``share_right``)."""
    shape = SHAPES["normal" if stress.noise == BINOMIAL else stress.noise]
    values = shape(rng, size)
    collapsed = rng.random(size) < stress.collapse_share
    return values - collapsed * rng.uniform(*COLLAPSE, size)


def share_right(rng: np.random.Generator, expected: float, *, level: float, spread: float) -> float:
    """Per cent right of N examples; N is such that at ``level`` the sd is ``spread``.

    sd = 100 sqrt(p (1 - p) / N) with p = level / 100: near 100 % a loss widens it.
    """
    p = level / 100
    examples = max(LEAST_EXAMPLES, round(p * (1 - p) / (spread / 100) ** 2))
    right = rng.binomial(examples, min(max(expected / 100, 0.0), 1.0))
    return 100 * float(right) / examples


def moved_before(rng: np.random.Generator, runs: int, stress: Stress) -> Values:
    """Where each of the last runs before the trial stood, oldest first, in sd; 0 = at its begin."""
    if not stress.moved_before:
        return np.zeros(runs)
    trend = -stress.trend * np.arange(runs, 0, -1)
    steps = stress.walk * rng.standard_normal(runs) if stress.walk else np.zeros(runs)
    return np.asarray(trend + np.cumsum(steps)[::-1], dtype=np.float64)


def nights(rng: np.random.Generator, count: int, stress: Stress) -> Values:
    """Deviations of successive nights, of unit variance."""
    return correlated(rng, count, stress.night_memory, 1.0)


def with_night(deviation: float, night: float, stress: Stress) -> float:
    """A run's deviation where its night gives a share of the variance."""
    share = stress.nights
    return math.sqrt(1 - share) * deviation + math.sqrt(share) * night
