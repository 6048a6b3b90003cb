"""Value of information: whether the next measurement is worth its price.

Everything is counted in baseline runs: a faster candidate saves 1 - 1/S of one, every run
that production still makes. L runs remain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compilegate.domain.judging.concurrent import samples_of
from compilegate.domain.judging.evidence import Arm, Evidence, walls
from compilegate.domain.judging.looks import next_look
from compilegate.domain.judging.noninferiority import baseline_needed
from compilegate.domain.judging.power import EVEN, Design
from compilegate.domain.judging.quality import first_runs

# A trial before any measurement: share of candidates that win, and by how much when they do.
CHANCE_OF_A_WIN = 0.4
TYPICAL_WIN = 1.35
# Runs that pass while the trial lasts, and full runs it takes on average.
RUNS_DURING_TRIAL = 2
FULL_RUNS_EXPECTED = 1.5
# Chance that a candidate whose speed is proven also holds its quality.
CHANCE_QUALITY_HOLDS = 0.8


@dataclass(frozen=True)
class InformationValue:
    """What a step is expected to bring and what it costs, both in baseline runs."""

    gain: float
    cost: float

    @property
    def pays(self) -> bool:
        """Whether the step brings at least what it costs."""
        return self.gain >= self.cost


def value_of_a_trial(
    runs_remaining: float, *, full_run_steps: int, segment_steps: int, arms: int, blocks: int
) -> InformationValue:
    """Whether to measure at all.

    gain = 0.4 max(0, (L - 2)(1 - 1/1.35) - 1.5/1.35); cost = blocks x arms x steps of a
    segment / steps of a run.
    """
    saved = (runs_remaining - RUNS_DURING_TRIAL) * (1 - 1 / TYPICAL_WIN)
    gain = CHANCE_OF_A_WIN * max(0.0, saved - FULL_RUNS_EXPECTED / TYPICAL_WIN)
    return InformationValue(gain=gain, cost=blocks * arms * segment_steps / full_run_steps)


def value_of_runs(
    runs_remaining: float, saved_share: float, cost: float, runs: int
) -> InformationValue:
    """Whether ``runs`` more dedicated candidate runs pay at ``cost`` (in baseline runs).

    gain = 0.8 (L - k) x share of a run's price that the candidate saves.
    """
    return InformationValue(
        gain=CHANCE_QUALITY_HOLDS * max(0.0, runs_remaining - runs) * saved_share, cost=cost
    )


def value_of_shadow_runs(
    candidate: Arm, evidence: Evidence, design: Design, speedup: float
) -> tuple[InformationValue, int] | None:
    """What the dedicated runs still needed bring and cost, and how many; None if L is unknown."""
    remaining = evidence.runs_left()
    samples = samples_of(candidate, evidence)
    n, variance = len(samples.candidate), samples.pooled_variance
    if remaining is None:
        return None
    needed = None
    if variance and samples.degrees_of_freedom >= 2:
        relative = math.sqrt(variance) / evidence.quality.margin
        needed = design.runs_needed(relative, EVEN) or design.n_max
    target = max(needed or 0, next_look(n, design.n_max) or n)
    if evidence.policy.quality_runs == "hybrid":  # production makes all but the first
        target = first_runs(evidence)
    saved = 1 - evidence.price_ratio(candidate) / speedup
    runs = max(target - n, 0)
    cost = runs * (1 - saved) + paid_baseline_runs(candidate, evidence, target)
    return value_of_runs(remaining, saved, cost, runs), runs


def paid_baseline_runs(candidate: Arm, evidence: Evidence, target: int) -> int:
    """Dedicated baseline runs beside which ``target`` candidate runs prove most for their price.

    Production's own come for nothing beside a shadow trial, one or more a round, so it pays
    only for what they leave to be made. Otherwise it pays for as many as the candidate's.
    """
    samples = samples_of(candidate, evidence)
    missing = concurrent_runs_missing(candidate, evidence, target)
    if evidence.plan.production_beside and (samples.baseline or not samples.candidate):
        return max(missing - 1, 0)
    if target < 2:  # no look yet
        return missing
    return max(target - len(samples.baseline), missing)


def concurrent_runs_missing(candidate: Arm, evidence: Evidence, target: int) -> int:
    """Baseline runs of the same weeks without which ``target`` candidate runs prove nothing."""
    have = len(samples_of(candidate, evidence).baseline)
    untimed = not walls(evidence.baseline.quality) and not evidence.history_wall_seconds
    needed = baseline_needed(target) if target >= 2 or untimed else 0
    return max(needed - have, 0)
