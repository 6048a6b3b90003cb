"""The split of the spread that a candidate's quality gate has to overcome, from the evidence.

Both arms' runs, scored on one set, give tau^2 (evaluation_noise.py); s^2 is the spread that the
gate itself pools over history, baseline and candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from compilegate.domain.judging.concurrent import samples_of
from compilegate.domain.judging.evaluation_noise import Split, tau_squared
from compilegate.domain.judging.evidence import Arm, Evidence, finished

# Below this the spread is too uncertain to say what makes it: at 3 its 80 % interval is 0.7 to 2.3
# times the estimate.
LEAST_DF = 3
# A metric is intercept + slope x the mean outcome: a share or percentage of right or wrong
# examples, or a mean loss. Scripts round metrics to four digits.
LINES = ((0.0, 1.0), (0.0, 100.0), (1.0, -1.0), (100.0, -100.0))
ROUNDED = 2e-4


class Finding(StrEnum):
    """What is known of the evaluation's part, in the decision document."""

    MORE_EXAMPLES = "more_examples"
    NOT_EXAMPLES = "not_examples"
    UNCLEAR = "unclear"
    TOO_FEW_RUNS = "too_few_runs"
    SETS_VARY = "sets_vary"
    OTHER_METRIC = "other_metric"


def split_of(candidate: Arm, evidence: Evidence) -> Split | Finding | None:
    """The split, why there is none, or None where no run recorded outcomes."""
    arms = [finished(arm.quality) for arm in (evidence.baseline, candidate)]
    read = [[(run, one) for run in runs if (one := run.outcomes)] for runs in arms]
    known = [pair for pairs in read for pair in pairs]
    if not known:
        return None
    if len({one.population for _, one in known}) > 1:
        return Finding.SETS_VARY
    slope = _slope([(run.metric or 0.0, one.mean) for run, one in known])
    if slope is None:
        return Finding.OTHER_METRIC
    tau = tau_squared([[one for _, one in pairs] for pairs in read])
    samples = samples_of(candidate, evidence)
    variance, df = samples.pooled_variance, samples.degrees_of_freedom
    if tau is None or not variance or df < LEAST_DF:
        return Finding.TOO_FEW_RUNS
    first = known[0][1]
    return Split(math.sqrt(variance), df, first.examples, slope**2 * tau, first.per_outcome)


def _slope(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Of the line on which every (metric, mean outcome) lies; None where there is none."""
    for intercept, slope in LINES:
        if all(
            math.isclose(metric, intercept + slope * mean, rel_tol=ROUNDED, abs_tol=ROUNDED**2)
            for metric, mean in pairs
        ):
            return slope
    return None
