"""Kayenta's judge (NetflixACAJudge) with one metric, ``direction: decrease`` and its defaults.

From spinnaker/kayenta at a69573be, MannWhitneyClassifier and MannWhitney: the canary is classified
Low, and its score falls from 100 to 0, where the 98 % confidence interval of the Hodges-Lehmann
shift lies below -0.25 times the size of its estimate and the mean is not above the baseline's.
Its documentation asks for at least 50 points a metric. Roots are sought more closely than to
its 1e-4 of the metric's unit, in which some of these metrics have all their spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, rankdata

from benchmarks.referee.trial import Rule, Trial

TOLERANCE, CONFIDENCE = 0.25, 0.98
PRECISION = 1e-6  # of the range that is possible


def statistic(shift: float, canary: Sequence[float], control: Sequence[float]) -> float:
    """The rank-sum statistic, in its sds, of the canary moved down by the shift."""
    ours, theirs = len(canary), len(control)
    ranks = rankdata(np.concatenate([np.subtract(canary, shift), control]))
    ties = np.unique(ranks, return_counts=True)[1].astype(float)
    apart = float(ranks[:ours].sum()) - ours * (ours + 1) / 2 - ours * theirs / 2
    total = ours + theirs
    tied = float((ties**3 - ties).sum()) / (total * (total - 1))
    sd = np.sqrt(ours * theirs / 12 * (total + 1 - tied))
    return float((apart - np.sign(apart) / 2) / sd)


def shift_at(quantile: float, canary: Sequence[float], control: Sequence[float]) -> float:
    """The shift at which the statistic is the quantile, within the shifts that are possible."""
    low, high = min(canary) - max(control), max(canary) - min(control)

    def above(shift: float) -> float:
        return statistic(shift, canary, control) - quantile

    if above(low) <= 0:
        return low
    return (
        high if above(high) >= 0 else float(brentq(above, low, high, xtol=PRECISION * (high - low)))
    )


def is_low(canary: Sequence[float], control: Sequence[float]) -> bool:
    """Whether the canary is classified as Low."""
    quantile = float(norm.ppf((1 + CONFIDENCE) / 2))
    estimate, upper = (shift_at(q, canary, control) for q in (0.0, -quantile))
    return upper < -TOLERANCE * abs(estimate) and fmean(canary) <= fmean(control)


def passes(trial: Trial, runs: int) -> bool:
    """Whether the canary's score is 100."""
    baseline, candidate = trial.each(runs)
    return not is_low(candidate, baseline)


RULES: dict[str, Rule] = {
    "Kayenta, 10 each": partial(passes, runs=10),
    "Kayenta, 50 each": partial(passes, runs=50),
}
