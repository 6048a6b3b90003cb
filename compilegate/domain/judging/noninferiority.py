"""The comparison behind the quality gate: candidate against baseline, with history.

Estimand: the mean final metric of runs of different seeds, candidate minus baseline, on what
production trains on while the candidate's own runs are made. x are the candidate's final
metrics (n), B the baseline's of the same weeks (n_b), H its history (n_0), all turned so that
higher is better; concurrent.py says which run is which. History may have drifted: its mean is
taken to be off by a normal error of sd kappa x sigma, and it never counts for more than half
the baseline runs of today, so that a drift beyond kappa is diluted as well:

    w_H = min{1 / (1/n_0 + kappa^2), n_b / 2}    runs, never more than 1/kappa^2 = 4

The first term is the location commensurate prior of Hobbs, Carlin, Mandrekar and Sargent
(2011, Biometrics 67:1047) with a fixed precision 1/(kappa sigma)^2. Where history and the
baseline of today disagree beyond what kappa allows, kappa is what the data say. With w_B = n_b:

    mu = (w_H mean(H) + w_B mean(B)) / (w_H + w_B),   v = 1/n + 1/(w_H + w_B)
    s^2 = max{(SS_H + SS_B + SS_x) / df, SS_x / (n - 1)},   D = mean(x) - mu

The spread is never taken smaller than the candidate's own: a compiler that makes training
less stable must not hide behind a calm baseline. Where the candidate's own is the larger, it
rests on the candidate's few runs, and df is that of a difference of two means with different
spreads (Satterthwaite 1946, Biometrics Bulletin 2:110; Welch 1947, Biometrika 34:28). With
a = s_x^2 / n and r = s_r^2 / (w_H + w_B), s_r^2 = (SS_H + SS_B) / df_r:

    df = (a + r)^2 / (a^2 / (n - 1) + r^2 / df_r),   never below n - 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from compilegate.domain.arithmetic import mean, squares
from compilegate.domain.judging import student_t

# Drift of history that is allowed for, in standard deviations of the metric.
KAPPA = 0.5
# History counts as drifted when it and today's baseline differ by more than this many
# standard errors (16 % of undrifted histories do: they merely count for less).
CONFLICT = 1.4
# Baseline runs of the same weeks that a look needs, and the most that history counts for, as
# shares of the candidate's and of these baseline runs. A history that is lower by 0.5, 1 and
# 1.5 sd, the harmful way, so spends at most 0.9, 1.4 and 1.5 times the level of one candidate
# (benchmarks/decision/levels.json).
BESIDE_SHARE = 0.5
HISTORY_SHARE = 0.5


@dataclass(frozen=True)
class Samples:
    """Final metrics, higher is better: candidate, baseline of the same weeks, history.

    ``after`` has, for every baseline run, how many of the candidate's runs came before it;
    without it the arms took turns, the baseline first.
    """

    candidate: Sequence[float]
    baseline: Sequence[float]
    history: Sequence[float]
    after: Sequence[int] | None = None

    @property
    def degrees_of_freedom(self) -> int:
        """(n_0 - 1) + (n_b - 1) + (n - 1), each at least 0."""
        return sum(max(len(values) - 1, 0) for values in self._all)

    @property
    def pooled_variance(self) -> float | None:
        """(SS_H + SS_B + SS_x) / df, None without a degree of freedom."""
        df = self.degrees_of_freedom
        return math.fsum(squares(values) for values in self._all) / df if df else None

    def baseline_at(self, runs: int) -> int | None:
        """Baseline runs that a look at so many candidate runs sees; None while it lacks some.

        Those before the candidate's last of these runs, and later ones only until the look has
        as many as it needs. So a look's samples follow from the order of runs alone, and what
        comes later cannot change them: a look is one test, however often the judge is called.
        """
        needed, after = baseline_needed(runs), self.after
        before = sum(
            (place if after is None else after[place]) < runs for place in range(len(self.baseline))
        )
        seen = max(before, needed)
        return seen if seen <= len(self.baseline) and runs <= len(self.candidate) else None

    def first(self, runs: int) -> Samples:
        """What the look at so many candidate runs sees; what came later waits for the next."""
        beside = self.baseline_at(runs)
        return Samples(self.candidate[:runs], self.baseline[:beside], self.history)

    @property
    def _all(self) -> tuple[Sequence[float], ...]:
        return (self.history, self.baseline, self.candidate)


@dataclass(frozen=True)
class Comparison:
    """Difference candidate minus reference in the metric's unit; negative is worse."""

    difference: float
    spread: float
    df: float
    runs: int
    reference_runs: float  # w_H + w_B
    history_weight: float  # w_H
    kappa: float

    @property
    def standard_error(self) -> float:
        """s sqrt(v)."""
        return self.error_at(self.runs, self.reference_runs)

    def error_at(self, runs: float, reference_runs: float) -> float:
        """The standard error that so many runs would have."""
        return self.spread * math.sqrt(1 / runs + 1 / reference_runs)

    def p_inferior(self, margin: float) -> float:
        """P(T_df > (D + margin) / se): chance of this, or better, at a loss of ``margin``."""
        return student_t.upper_tail((self.difference + margin) / self.standard_error, self.df)

    @property
    def p_worse(self) -> float:
        """P(T_df > -D / se): chance of this, or worse, without any loss."""
        return student_t.upper_tail(-self.difference / self.standard_error, self.df)

    def interval(self, level: float) -> tuple[float, float]:
        """Difference with one-sided error ``level`` on each side."""
        half = student_t.quantile(1 - level, self.df) * self.standard_error
        return (self.difference - half, self.difference + half)


def history_weight(n_history: int, kappa: float = KAPPA) -> float:
    """w_H: how many runs of today a history of ``n_history`` runs is worth."""
    return 1 / (1 / n_history + kappa**2) if n_history else 0.0


def weight_beside(n_history: int, n_baseline: float, kappa: float = KAPPA) -> float:
    """w_H beside so many baseline runs of today; without any, history is all there is."""
    weight = history_weight(n_history, kappa)
    return min(weight, HISTORY_SHARE * n_baseline) if n_baseline else weight


def baseline_needed(runs: int) -> int:
    """Baseline runs of the same weeks that a look at so many candidate runs needs."""
    return max(1, math.ceil(BESIDE_SHARE * runs))


def balanced_baseline(runs: int, n_history: int) -> int:
    """Fewest baseline runs of the same weeks that, with history, weigh as much as ``runs``."""
    least = math.ceil(runs / (1 + HISTORY_SHARE)) if n_history else runs
    return max(least, math.ceil(runs - history_weight(n_history)), baseline_needed(runs))


def still_valid(
    history: Sequence[float], today: Sequence[float], variance: float
) -> Sequence[float]:
    """The history, or nothing of it once today's runs contradict it."""
    return history if allowed_drift(history, today, variance) <= KAPPA else ()


def compare(samples: Samples) -> Comparison | None:
    """The comparison, None where there is no candidate, no reference or no spread to go by."""
    pooled, n = samples.pooled_variance, len(samples.candidate)
    if pooled is None or not n or not (samples.baseline or samples.history):
        return None
    own = squares(samples.candidate) / (n - 1) if n >= 2 else 0.0
    variance = max(pooled, own)
    kappa = allowed_drift(samples.history, samples.baseline, variance)
    w_b = float(len(samples.baseline))
    w_h = weight_beside(len(samples.history), w_b, kappa)
    means = [mean(values) if values else 0.0 for values in (samples.history, samples.baseline)]
    reference = (w_h * means[0] + w_b * means[1]) / (w_h + w_b)
    df = float(samples.degrees_of_freedom)
    return Comparison(
        difference=mean(samples.candidate) - reference,
        spread=math.sqrt(variance),
        df=_own_spread_df(samples, own, w_h + w_b) if own > pooled else df,
        runs=n,
        reference_runs=w_h + w_b,
        history_weight=w_h,
        kappa=kappa,
    )


def _own_spread_df(samples: Samples, own: float, reference_runs: float) -> float:
    """Satterthwaite's degrees of freedom; ``own`` is the candidate's variance, the larger one."""
    n, rest = len(samples.candidate), Samples((), samples.baseline, samples.history)
    mine = own / n
    theirs = (rest.pooled_variance or 0.0) / reference_runs
    spread = mine**2 / (n - 1)
    if theirs:
        spread += theirs**2 / rest.degrees_of_freedom
    return max((mine + theirs) ** 2 / spread, n - 1.0)


def allowed_drift(history: Sequence[float], baseline: Sequence[float], variance: float) -> float:
    """The drift that is allowed for, or the one that today's baseline shows if that is larger."""
    if not history or not baseline or variance <= 0:
        return KAPPA
    shift = (mean(baseline) - mean(history)) ** 2 / variance
    expected = 1 / len(history) + 1 / len(baseline) + KAPPA**2
    return KAPPA if shift <= CONFLICT**2 * expected else math.sqrt(shift)
