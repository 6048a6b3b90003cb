"""No significant difference: the candidate goes on unless a two-sided 5 % test finds it worse."""

from __future__ import annotations

from functools import partial
from statistics import fmean

from scipy.stats import mannwhitneyu, ttest_ind

from benchmarks.referee.trial import Rule, Trial

LEVEL = 0.05


def welch(trial: Trial, runs: int) -> bool:
    """Welch's t test of the means."""
    baseline, candidate = trial.each(runs)
    p = ttest_ind(candidate, baseline, equal_var=False).pvalue
    return fmean(candidate) >= fmean(baseline) or not p < LEVEL


def mann_whitney(trial: Trial, runs: int) -> bool:
    """Mann and Whitney's test of the ranks; exact where no figures are tied."""
    baseline, candidate = trial.each(runs)
    found = mannwhitneyu(candidate, baseline)
    return found.statistic >= runs**2 / 2 or not found.pvalue < LEVEL


RULES: dict[str, Rule] = {
    "not significant, Welch, 8 each": partial(welch, runs=8),
    "not significant, Mann-Whitney, 5 each": partial(mann_whitney, runs=5),
    "not significant, Mann-Whitney, 10 each": partial(mann_whitney, runs=10),
}
