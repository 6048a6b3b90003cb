"""Means of a few runs: the candidate goes on where it is not worse by the margin."""

from __future__ import annotations

from functools import partial
from statistics import fmean

from benchmarks.referee.trial import Rule, Trial


def close(trial: Trial, runs: int) -> bool:
    """Whether the means differ by less than the margin."""
    baseline, candidate = trial.each(runs)
    return fmean(candidate) > fmean(baseline) - trial.margin


RULES: dict[str, Rule] = {
    "one run each": partial(close, runs=1),
    "means of three runs each": partial(close, runs=3),
}
