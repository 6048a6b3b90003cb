"""Proof by identity: runs of both arms that end with exactly the same weights.

Where a candidate's run ends with the very weights of the baseline's run of the same seed, data
and initial weights, the change has changed nothing: both trained one model, and its quality is
equal without statistics. Unequal weights mean nothing, since the smallest rounding becomes
another model within some hundred steps.

What counts is drawn narrowly. A pair is two finished runs of different jobs, one of each arm, for
which all of this is recorded and equal: seed, data, initial weights, and the fingerprint of every
final weight and buffer (``final_weights_sha256``). It is *identical* where the metric is equal as
well (the same weights scored otherwise would say that the score depends on more) and the weights
have trained (``final_start_sha256`` differs from the initial one, so that a model which was never
updated proves nothing). Quality is proven by

    IDENTICAL_PAIRS pairs that end in different weights, and no pair that is not identical.

One pair could come of a script whose seed does not reach the weights. More would add little: a
change that altered a share q of the T steps would leave one run of them as it was with a chance
of (1 - q)^T, so two pairs of 600 steps bound q by 1 - 0.05^(1/1200) = 0.25 % with 95 %
confidence. A candidate of which some pairs are unequal is judged by statistics alone, as is a run
without a partner; a loss that statistics prove is a loss. Speed is proven as of every candidate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compilegate.domain.judging.evidence import Arm, FullRun, finished

IDENTICAL_PAIRS = 2
# The same number, written and read again.
SAME_METRIC = 1e-12


@dataclass(frozen=True)
class Identity:
    """``models`` are the different final weights of identical pairs; other pairs are ``unequal``.

    ``seeds`` are those of the identical pairs.
    """

    models: int = 0
    unequal: int = 0
    seeds: tuple[int, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether it proves that the candidate trains what the baseline does."""
        return self.models >= IDENTICAL_PAIRS and not self.unequal

    @property
    def words(self) -> str:
        """What was seen, for people."""
        seeds = ", ".join(map(str, self.seeds))
        return (
            f"{self.models} runs ended with exactly the weights of the baseline's runs of the same "
            f"seed ({seeds}): they trained the same models"
        )


def identity_of(candidate: Arm, baseline: Arm) -> Identity | None:
    """What the final weights of both arms' full runs say, None where no two runs are a pair."""
    same: dict[str | None, int] = {}
    unequal = 0
    for run in finished(candidate.quality):
        for other in finished(baseline.quality):
            if run.seed is None or not _is_pair(run, other):
                continue
            if _identical(run, other):
                same[run.final_weights] = run.seed
            else:
                unequal += 1
    if not same and not unequal:
        return None
    return Identity(len(same), unequal, tuple(sorted(set(same.values()))))


def _is_pair(run: FullRun, other: FullRun) -> bool:
    """Whether they are of two jobs, and all that two runs must share is recorded and equal."""
    draw, its = ((one.seed, one.data, one.initial_weights) for one in (run, other))
    recorded = run.data and run.initial_weights and run.final_weights and other.final_weights
    is_one_job = run.job and run.job == other.job
    return draw == its and bool(recorded) and not is_one_job


def _identical(ours: FullRun, theirs: FullRun) -> bool:
    if ours.metric is None or theirs.metric is None:
        return False
    both_trained = bool(ours.trained_weights and theirs.trained_weights)
    same_metric = math.isclose(ours.metric, theirs.metric, rel_tol=SAME_METRIC)
    return ours.final_weights == theirs.final_weights and same_metric and both_trained
