"""Non-inferiority: the candidate goes on once Welch's test shows a loss below the margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import stdev

import numpy as np
from scipy.stats import norm, ttest_ind_from_stats

from benchmarks.referee.trial import MOST_CANDIDATE, Rule, Trial

LEVEL, POWER = 0.05, 0.9
FIRST_LOOK, LAST_LOOK = 3, 36


def shown(baseline: Sequence[float], candidate: Sequence[float], margin: float) -> bool:
    """Whether a one-sided 5 % test rejects a loss of the margin or more."""
    ours, theirs = (
        (np.mean(metrics), np.std(metrics, ddof=1), len(metrics))
        for metrics in (np.add(candidate, margin), baseline)
    )
    p = ttest_ind_from_stats(*ours, *theirs, equal_var=False, alternative="greater").pvalue
    return bool(p < LEVEL)


def fixed(trial: Trial, runs: int) -> bool:
    """One test of so many runs of each arm."""
    return shown(*trial.each(runs), trial.margin)


def planned(trial: Trial) -> bool:
    """One test of as many runs as the textbook plans for the sd of the past runs."""
    ratio = stdev(trial.past) / trial.margin
    runs = math.ceil(2 * (ratio * (norm.ppf(1 - LEVEL) + norm.ppf(POWER))) ** 2) + 1
    return fixed(trial, min(max(runs, 2), MOST_CANDIDATE))


def after_every_run(trial: Trial) -> bool:
    """The same test after every run of each arm, until it shows what one hoped for."""
    baseline, candidate = trial.each(FIRST_LOOK)
    while not shown(baseline, candidate, trial.margin):
        if len(candidate) == LAST_LOOK:
            return False
        baseline.append(trial.baseline())
        candidate.append(trial.candidate())
    return True


RULES: dict[str, Rule] = {
    "non-inferiority, 8 each": partial(fixed, runs=8),
    "non-inferiority, 16 each": partial(fixed, runs=16),
    "non-inferiority, as many as planned": planned,
    "t test after every run, 3 to 36 each": after_every_run,
}
