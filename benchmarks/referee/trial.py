"""One decision: real runs are paid out one by one, and counted."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.referee.groups import Group

SEED = 30
PAST = 5
# The most runs of an arm that a rule may ask for: two per candidate run of the baseline.
MOST_CANDIDATE, MOST_BASELINE = 96, 192


class OutOfRunsError(Exception):
    """A rule asked for more runs than anybody would make: it has not promoted."""


@dataclass
class Trial:
    """What a rule decides on. Metrics and the margin are in the metric's unit, higher is better.

    ``past`` are runs of the baseline that production made before. ``seed`` is for what a rule
    simulates beside the runs; ``other`` is what it spent beside them, in whole runs.
    """

    margin: float
    past: tuple[float, ...]
    seed: tuple[int, ...]
    baseline_metrics: npt.NDArray[np.float64]
    candidate_metrics: npt.NDArray[np.float64]
    baseline_runs: int = 0
    candidate_runs: int = 0
    other: float = 0.0

    def baseline(self) -> float:
        """The metric of one more run of the baseline."""
        if self.baseline_runs >= len(self.baseline_metrics):
            raise OutOfRunsError
        self.baseline_runs += 1
        return float(self.baseline_metrics[self.baseline_runs - 1])

    def candidate(self) -> float:
        """The metric of one more run of the candidate."""
        if self.candidate_runs >= len(self.candidate_metrics):
            raise OutOfRunsError
        self.candidate_runs += 1
        return float(self.candidate_metrics[self.candidate_runs - 1])

    def each(self, runs: int) -> tuple[list[float], list[float]]:
        """So many runs of each arm in turns: the baseline's, the candidate's."""
        pairs = [(self.baseline(), self.candidate()) for _ in range(runs)]
        return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


# Whether the change may go on. A rule asks for runs until it knows.
Rule = Callable[[Trial], bool]


def draw(group: Group, margin: float, index: int, *, loses: bool) -> Trial:
    """The trial of that number: the same runs for every rule, whether or not the candidate loses.

    Runs are drawn with replacement, so that the group is the population and the truth is exact: a
    candidate that loses is worse by the margin (in sd of the group), any other is as good.
    """
    seed = (SEED, zlib.crc32(group.name.encode()), round(1000 * margin), index)
    rng = np.random.default_rng(seed)
    past = rng.choice(group.metrics, PAST)
    baseline = rng.choice(group.metrics, MOST_BASELINE)
    candidate = rng.choice(group.metrics, MOST_CANDIDATE)
    lost = margin * group.sd
    return Trial(lost, tuple(past.tolist()), seed, baseline, candidate - lost * loses)


def promotes(rule: Rule, trial: Trial) -> bool:
    """What the rule makes of the trial."""
    try:
        return bool(rule(trial))
    except OutOfRunsError:
        return False
