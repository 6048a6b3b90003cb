"""The comparison behind the quality gate: candidate against baseline, with history.

x are the candidate's final metrics (n), B the baseline's of the same weeks (n_b), H its
history (n_0), all turned so that higher is better. History may have drifted: its mean is
taken to be off by a normal error of sd kappa x sigma, so that it counts as

    w_H = 1 / (1/n_0 + kappa^2)    runs, never more than 1/kappa^2 = 4 at kappa = 0.5

which is the location commensurate prior of Hobbs, Carlin, Mandrekar and Sargent (2011,
Biometrics 67:1047) with a fixed precision 1/(kappa sigma)^2. Where history and the baseline
of today disagree beyond what kappa allows, kappa is what the data say. With w_B = n_b:

    mu = (w_H mean(H) + w_B mean(B)) / (w_H + w_B),   v = 1/n + 1/(w_H + w_B)
    s^2 = max{(SS_H + SS_B + SS_x) / df, SS_x / (n - 1)},   D = mean(x) - mu

The spread is never taken smaller than the candidate's own: a compiler that makes training
less stable must not hide behind a calm baseline.
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


@dataclass(frozen=True)
class Samples:
    """Final metrics, higher is better: candidate, baseline of the same weeks, history."""

    candidate: Sequence[float]
    baseline: Sequence[float]
    history: Sequence[float]

    @property
    def degrees_of_freedom(self) -> int:
        """(n_0 - 1) + (n_b - 1) + (n - 1), each at least 0."""
        return sum(max(len(values) - 1, 0) for values in self._all)

    @property
    def pooled_variance(self) -> float | None:
        """(SS_H + SS_B + SS_x) / df, None without a degree of freedom."""
        df = self.degrees_of_freedom
        return math.fsum(squares(values) for values in self._all) / df if df else None

    def first(self, runs: int) -> Samples:
        """What a look at so many runs sees: the candidate's later ones wait for the next look."""
        return Samples(self.candidate[:runs], self.baseline, self.history)

    @property
    def _all(self) -> tuple[Sequence[float], ...]:
        return (self.history, self.baseline, self.candidate)


@dataclass(frozen=True)
class Comparison:
    """Difference candidate minus reference in the metric's unit; negative is worse."""

    difference: float
    spread: float
    df: int
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


def still_valid(
    history: Sequence[float], today: Sequence[float], variance: float
) -> Sequence[float]:
    """The history, or nothing of it once today's runs contradict it."""
    return history if allowed_drift(history, today, variance) <= KAPPA else ()


def compare(samples: Samples) -> Comparison | None:
    """The comparison, None where there is no candidate, no reference or no spread to go by."""
    variance, n = samples.pooled_variance, len(samples.candidate)
    if variance is None or not n or not (samples.baseline or samples.history):
        return None
    if n >= 2:
        variance = max(variance, squares(samples.candidate) / (n - 1))
    kappa = allowed_drift(samples.history, samples.baseline, variance)
    w_h, w_b = history_weight(len(samples.history), kappa), float(len(samples.baseline))
    means = [mean(values) if values else 0.0 for values in (samples.history, samples.baseline)]
    reference = (w_h * means[0] + w_b * means[1]) / (w_h + w_b)
    return Comparison(
        difference=mean(samples.candidate) - reference,
        spread=math.sqrt(variance),
        df=samples.degrees_of_freedom,
        runs=n,
        reference_runs=w_h + w_b,
        history_weight=w_h,
        kappa=kappa,
    )


def allowed_drift(history: Sequence[float], baseline: Sequence[float], variance: float) -> float:
    """The drift that is allowed for, or the one that today's baseline shows if that is larger."""
    if not history or not baseline or variance <= 0:
        return KAPPA
    shift = (mean(baseline) - mean(history)) ** 2 / variance
    expected = 1 / len(history) + 1 / len(baseline) + KAPPA**2
    return KAPPA if shift <= CONFLICT**2 * expected else math.sqrt(shift)
