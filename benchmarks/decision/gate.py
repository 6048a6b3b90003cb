"""The quality gate's rules once more, over many trials at once: the oracle of its error levels.

Written from the rules as the judge's modules state them (comparison.py, design.py, quality.py) and
with none of their code but the constants, in numpy, so that a hundred thousand trials take seconds.
tests/benchmarks/test_gate.py holds it and the judge against each other.

Everything is in units of a run's standard deviation, metrics are better when higher, and the
candidate is centred where a loss of exactly the margin puts it, so that neither the margin nor
the spread is left in the law of the statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from compilegate.domain.judging.comparison import BESIDE_SHARE
from compilegate.domain.judging.design import SCHEDULE

Array = npt.NDArray[np.float64]

HISTORIES = (0, 3, 5, 10, 20)
# How many baseline runs of the same weeks a look sees that has n of the candidate.
DESIGNS = {
    "as many baseline runs": "production takes turns, or the trial pays for them",
    "one more every round": "production goes on beside extra runs: shadow",
    "half as many": "the fewest that can promote",
}


class Sample:
    """Size, mean and squares about the mean of a sample that grows, one entry per trial."""

    def __init__(self, rng: np.random.Generator, trials: int, spread: float = 1.0) -> None:
        self._rng, self._spread = rng, spread
        self.size = 0
        self.mean = np.zeros(trials)
        self.squares = np.zeros(trials)

    def grow(self, size: int) -> None:
        """Add normal runs until there are ``size``."""
        more = size - self.size
        if more <= 0:
            return
        mean = self._spread * self._rng.standard_normal(self.mean.size) / math.sqrt(more)
        squares = self._rng.chisquare(more - 1, self.mean.size) if more > 1 else 0.0
        apart = mean - self.mean
        self.squares += self._spread**2 * squares + apart**2 * self.size * more / size
        self.mean += apart * more / size
        self.size = size

    @classmethod
    def of(cls, runs: Array) -> Sample:
        """The sample of these runs, one trial a row."""
        sample = cls(np.random.default_rng(), len(runs))
        sample.size = runs.shape[1]
        if sample.size:
            sample.mean = runs.mean(axis=1)
            sample.squares = ((runs - sample.mean[:, None]) ** 2).sum(axis=1)
        return sample


@dataclass(frozen=True)
class Statistic:
    """Candidate minus reference at one look, its standard error and degrees of freedom."""

    difference: Array
    error: Array
    df: Array

    @property
    def level(self) -> Array:
        """P(T_df > (D + m) / se), the margin being taken out of D: passes where small enough."""
        return np.asarray(stdtr(self.df, -self.difference / self.error))


def statistic(candidate: Sample, baseline: Sample, past: Sample) -> Statistic | None:
    """The gate's comparison of these samples, None with less than two degrees of freedom."""
    rest = max(baseline.size - 1, 0) + max(past.size - 1, 0)
    df = rest + candidate.size - 1
    if df < 2:
        return None
    own = candidate.squares / (candidate.size - 1)
    pooled = (candidate.squares + baseline.squares + past.squares) / df
    variance = np.maximum(pooled, own)
    theirs = (baseline.squares + past.squares) / max(rest, 1) / baseline.size
    mine = own / candidate.size
    spread = mine**2 / (candidate.size - 1) + theirs**2 / max(rest, 1)
    satterthwaite = np.maximum((mine + theirs) ** 2 / spread, candidate.size - 1)
    return Statistic(
        difference=candidate.mean - baseline.mean,
        error=np.sqrt(variance * (1 / candidate.size + 1 / baseline.size)),
        df=np.where(own > pooled, satterthwaite, df),
    )


def baseline_runs(design: str, n: int, look: int) -> int:
    """Baseline runs that look number ``look`` at ``n`` candidate runs sees, the first being 0."""
    fewest = max(1, math.ceil(BESIDE_SHARE * n))
    if design == "as many baseline runs":
        return n
    return max(look + 1, fewest) if design == "one more every round" else fewest


def pass_levels(
    rng: np.random.Generator,
    trials: int,
    *,
    design: str,
    history: int,
    spread: float = 1.0,
    looks: tuple[int, ...] = SCHEDULE,
) -> Array:
    """P(t_df > statistic) of every trial (row) at every look (column), at a loss of the margin.

    ``spread`` is the candidate's, over the baseline's. Where the history lies makes no difference.
    """
    candidate, baseline, past = (Sample(rng, trials, sd) for sd in (spread, 1.0, 1.0))
    past.grow(history)
    columns = []
    for look, n in enumerate(looks):
        candidate.grow(n)
        baseline.grow(baseline_runs(design, n, look))
        compared = statistic(candidate, baseline, past)
        columns.append(np.ones(trials) if compared is None else compared.level)
    return np.column_stack(columns)


def shares(n_max: int) -> Array:
    """n / n_max for the looks up to ``n_max``: what each may spend, but for c and the level."""
    return np.array([n / n_max for n in SCHEDULE if n <= n_max])


def achieved(levels: Array, n_max: int, level: float, c: float) -> float:
    """Share of trials that pass at some look with the factor ``c``."""
    bars = c * level * shares(n_max)
    return float((levels[:, : bars.size] <= bars).any(axis=1).mean())
