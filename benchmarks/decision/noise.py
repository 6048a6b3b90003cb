"""How a final metric varies from run to run, in units of its sd: shapes, diverging runs, nights.

Every shape has mean 0 and variance 1, so that a world changes the shape alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from benchmarks.decision.truth import Stress, correlated

Values = npt.NDArray[np.float64]
# A diverging run falls by so many sd.
FALL = (5.0, 10.0)

SHAPES: Mapping[str, Callable[[np.random.Generator, int], Values]] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    # Heavy tails: Student's t with 3 degrees of freedom.
    "t3": lambda rng, size: rng.standard_t(3, size) / math.sqrt(3),
    # To the bad side: a mirrored gamma of shape 2, skewness -1.41.
    "skew": lambda rng, size: (2.0 - rng.gamma(2.0, 1.0, size)) / math.sqrt(2.0),
}


def noise(rng: np.random.Generator, size: int, stress: Stress) -> Values:
    """Deviations of so many runs."""
    values = SHAPES[stress.noise](rng, size)
    diverged = rng.random(size) < stress.diverging
    return values - diverged * rng.uniform(*FALL, size)


def rounded(value: float, examples: int | None) -> float:
    """The nearest share of so many examples, in per cent; unchanged without their number."""
    return value if examples is None else 100 * round(value * examples / 100) / examples


def nights(rng: np.random.Generator, count: int, stress: Stress) -> Values:
    """Deviations of successive nights, of unit variance."""
    return correlated(rng, count, stress.night_memory, 1.0)


def with_night(deviation: float, night: float, stress: Stress) -> float:
    """A run's deviation where its night gives a share of the variance."""
    return math.sqrt(1 - stress.nights) * deviation + math.sqrt(stress.nights) * night
