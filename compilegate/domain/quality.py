"""The quality gate: one-sided non-inferiority over replicated full runs.

With x the candidate's metrics, B the concurrent baseline's and H the history, all turned so
that higher is better, the reference is the mean of B. History tells how much the metric
varies, never where it stands: the data may have moved since. The spread is never taken
smaller than the candidate's own. With D the difference, the candidate passes when D > -margin
is proven (Schuirmann 1987, one side):

    P(T_df > (D + margin) / (s sqrt(v))) <= level

A difference that is not proven either way is no proof of equality.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from compilegate.domain import student_t
from compilegate.domain.workload import Quality

CHANCE = 0.8


class QualityOutcome(StrEnum):
    """What the quality gate says of one candidate."""

    HELD = "held"
    WORSE = "worse"
    CRASHED = "crashed"
    MORE_RUNS = "more_runs"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class QualityFinding:
    """Difference candidate minus reference in the metric's unit; negative is worse."""

    outcome: QualityOutcome
    estimate: float | None
    interval: tuple[float, float] | None
    provable_margin: float | None
    runs_needed: int | None
    reason: str


@dataclass(frozen=True)
class _Comparison:
    difference: float
    standard_error: float
    spread: float
    df: int


def judge_quality(
    candidate: Sequence[float], baseline: Sequence[float], quality: Quality, *, level: float
) -> QualityFinding:
    """Decide one candidate's quality at error ``level`` on the final metrics of both arms."""
    sign = 1.0 if quality.goal == "maximize" else -1.0
    comparison = _compare(
        [sign * x for x in candidate],
        [sign * x for x in baseline],
        [sign * x for x in quality.history],
    )
    if comparison is None:
        return QualityFinding(
            QualityOutcome.INCONCLUSIVE, None, None, None, None,
            "too few runs to know how much the metric varies from seed to seed",
        )  # fmt: skip
    if comparison.spread == 0:
        return QualityFinding(
            QualityOutcome.INCONCLUSIVE, comparison.difference, None, None, None,
            "every run gave exactly the same metric, which says nothing about chance",
        )  # fmt: skip
    return _decide(comparison, quality.margin, level)


def _compare(
    candidate: Sequence[float], baseline: Sequence[float], history: Sequence[float]
) -> _Comparison | None:
    n, n_b, n_h = len(candidate), len(baseline), len(history)
    df = max(n - 1, 0) + max(n_b - 1, 0) + max(n_h - 1, 0)
    if n < 2 or n_b < 2 or df < 2:
        return None
    own = _squares(candidate)
    pooled = (_squares(history) + _squares(baseline) + own) / df
    spread = math.sqrt(max(pooled, own / (n - 1)))
    error = spread * math.sqrt(1 / n + 1 / n_b)
    difference = statistics.fmean(candidate) - statistics.fmean(baseline)
    return _Comparison(difference, error, spread, df)


def _squares(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _decide(c: _Comparison, margin: float, level: float) -> QualityFinding:
    half = student_t.quantile(1 - level, c.df) * c.standard_error
    p_inferior = student_t.upper_tail((c.difference + margin) / c.standard_error, c.df)
    p_worse = student_t.upper_tail(-c.difference / c.standard_error, c.df)
    provable = half + student_t.quantile(CHANCE, c.df) * c.standard_error
    if p_inferior <= level:
        outcome, reason = QualityOutcome.HELD, f"a loss of {margin:g} or more is ruled out"
    elif p_worse <= level:
        outcome, reason = QualityOutcome.WORSE, f"worse by {-c.difference:.4g} beyond chance"
    else:
        outcome, reason = (
            QualityOutcome.INCONCLUSIVE,
            (
                f"the metric varies by {c.spread:.4g} from seed to seed; with this many runs only "
                f"a margin of {provable:.4g} could be proven, not {margin:g}"
            ),
        )
    return QualityFinding(
        outcome=outcome,
        estimate=c.difference,
        interval=(c.difference - half, c.difference + half),
        provable_margin=provable,
        runs_needed=runs_needed(c.spread, margin, level),
        reason=reason,
    )


def runs_needed(spread: float, margin: float, level: float, *, limit: int = 500) -> int | None:
    """Runs per arm that would prove ``margin`` with 80 % chance at zero loss; None above limit."""
    for n in range(2, limit + 1):
        df = 2 * (n - 1)
        needed = student_t.quantile(1 - level, df) + student_t.quantile(CHANCE, df)
        if margin / (spread * math.sqrt(2 / n)) >= needed:
            return n
    return None
