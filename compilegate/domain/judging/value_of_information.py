"""Value of information: whether the next measurement is worth its price.

Everything is counted in baseline runs: a faster candidate saves 1 - 1/S of one, every run
that production still makes. L runs remain.
"""

from __future__ import annotations

from dataclasses import dataclass

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
