"""Sums that come out the same on every machine and in every order of their terms.

``math.fsum`` rounds once, so a mean does not depend on the order in which runs are listed;
the standard library's ``statistics`` changed its rounding between Python versions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; raises ZeroDivisionError when there is nothing to average."""
    return math.fsum(values) / len(values)


def squares(values: Sequence[float]) -> float:
    """Sum of squared deviations from the mean; 0 for fewer than two values."""
    if len(values) < 2 or min(values) == max(values):
        return 0.0  # exactly: the mean of equal values may be off by its last digit
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values)


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation (n - 1) of at least two values."""
    return math.sqrt(squares(values) / (len(values) - 1))


def median(values: Iterable[float]) -> float:
    """Middle value, or the mean of the two middle ones; raises IndexError when empty."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def normal_below(z: float) -> float:
    """P(Z <= z) of the standard normal: erfc(-z / sqrt 2) / 2 (Abramowitz and Stegun, 26.2.29)."""
    return math.erfc(-z / math.sqrt(2)) / 2


def ratio(value: float) -> str:
    """A speed-up as text, ``1.34x``."""
    return f"{ratio_figure(value)}x"


def ratio_figure(value: float) -> str:
    """``1.34``; within 2 % of 1 a digit more, as gains of half a per cent are proven too."""
    return f"{value:.{3 if 0 < abs(value - 1) < 0.02 else 2}f}"


# Names of the metrics that a deployment counts and watches.

NAMESPACE = "Compilegate"
STAGE = "Stage"
# A production run whose flag could not be followed: unreadable, malformed, not what the ledger
# says, or of overrides that do not fit.
FLAG_PROBLEMS = "FlagProblems"
# Written once a day; each is about the 24 hours before (domain/production/summaries.py).
# Decisions are counted by verdict.
VERDICT = "Verdict"
DECISIONS = "Decisions"
TRIAL_USD = "TrialUsd"
PRODUCTION_RUNS = "ProductionRuns"
FAILED_RUNS = "FailedRuns"
WAITED_RUNS = "WaitedRuns"
PRODUCTION_USD = "ProductionUsd"
SAVED_USD = "SavedUsd"
FLAGS_ON = "FlagsOn"
# Rows that the daily pass built, and those that were not what their ledgers say.
ROWS_BUILT = "RowsBuilt"
ROWS_REPAIRED = "RowsRepaired"
