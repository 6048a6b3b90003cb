"""The procedure of an article that this project began with, to compare with.

One full run of each arm; continue with the fastest that is 1.1 times as fast and whose metric
differs by no more than a tenth of a point; three more pairs in parallel decide; then a month of
production, and back at the first run that falls below by more.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.decision.driver import FIRST_PRODUCTION_SEED, Ending
from benchmarks.decision.truth import BASELINE, REJECT
from benchmarks.decision.world import FullRun, World

PAIRS = 3
MONTH = 12
TOLERANCE = 0.1  # percentage points


@dataclass
class Article:
    """The procedure on one workload; ``watched`` counts production runs since the promotion."""

    world: World
    reference: float = 0.0
    watched: int = 0

    def trial(self) -> Ending:
        """One run of every arm, then three pairs of the fastest that was accepted."""
        self.world.account.periods += 1
        base = self.world.shadow_run(BASELINE, 0)
        candidates = [arm.name for arm in self.world.workload.candidates]
        first = {name: self.world.shadow_run(name, 0) for name in candidates}
        passed = [name for name, run in first.items() if accepts([base], [run])]
        if not passed:
            return Ending("stay_off", None)
        chosen = min(passed, key=lambda name: first[name].hours)
        self.world.account.periods += 1
        bases = [self.world.shadow_run(BASELINE, seed) for seed in range(1, PAIRS + 1)]
        runs = [self.world.shadow_run(chosen, seed) for seed in range(1, PAIRS + 1)]
        if not accepts(bases, runs):
            return Ending("stay_off", chosen)
        self.reference = statistics.fmean(run.metric for run in (base, *bases))
        return Ending("promote", chosen)

    def probation(self, candidate: str) -> Ending:
        """A month of production; the first run that falls below reverts."""
        while self.watched < MONTH and not self.world.is_over:
            run = self.world.production_run(
                candidate, FIRST_PRODUCTION_SEED + self.watched, since_promotion=self.watched
            )
            self.watched += 1
            if self.reference - run.metric > TOLERANCE:
                return Ending("revert", candidate)
        return Ending("permanent", candidate)


def accepts(bases: list[FullRun], runs: list[FullRun]) -> bool:
    """Whether the candidate is fast enough, and its metric differs little either way."""
    hours, theirs = (statistics.fmean(run.hours for run in side) for side in (runs, bases))
    ours, reference = (statistics.fmean(run.metric for run in side) for side in (runs, bases))
    return theirs / hours >= REJECT and abs(ours - reference) <= TOLERANCE
