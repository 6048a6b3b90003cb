"""What teams do without statistics, and the textbook: the procedures to compare with.

The article's procedure: one full run per arm; continue where the speed-up reaches the bar and the
metrics differ by no more than a tolerance; three more pairs in parallel decide; then a month of
tagged production runs, and back at the first that falls below. Read to the letter the tolerance
is a tenth of a point either way; one-sided, only losses count; read charitably the tolerance is
the margin besides, and the month is judged by its mean.

The textbook: as many runs of each arm as Welch's test needs by the spread of earlier runs, one
test of non-inferiority at the end, one more after the month.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from benchmarks.decision.driver import FIRST_PRODUCTION_SEED, Ending
from benchmarks.decision.truth import BASELINE, REJECT, Arm
from benchmarks.decision.world import FullRun, World
from compilegate.domain.judging.student import quantile, upper_tail

PAIRS = 3
MONTH = 12
LETTER_TOLERANCE = 0.1  # percentage points
PILOTS = 5  # runs that show the spread where there is no history
MIN_HISTORY = 3
MOST_RUNS = 12
ALPHA, POWER = 0.05, 0.9


@dataclass
class Article:
    """The article's procedure in one of its readings: letter, one_sided or charitable."""

    world: World
    reading: str = "letter"
    bar: float = REJECT
    reference: float = 0.0

    @property
    def charitable(self) -> bool:
        """Whether it is read in its most favourable sense."""
        return self.reading == "charitable"

    @property
    def tolerance(self) -> float:
        """How far the candidate's metric may lie from the baseline's."""
        return self.world.workload.margin if self.charitable else LETTER_TOLERANCE

    def trial(self) -> Ending:
        """One run of every arm, then three pairs of the fastest that was accepted."""
        self.world.account.periods += 1
        base = self.world.shadow_run(BASELINE, 0)
        first = {arm.name: self.world.shadow_run(arm.name, 0) for arm in self._arms}
        passed = [name for name, run in first.items() if self._accepts([base], [run])]
        if not passed:
            return Ending("stay_off", None)
        chosen = min(passed, key=lambda name: first[name].hours)
        self.world.account.periods += 1
        bases = [self.world.shadow_run(BASELINE, seed) for seed in range(1, PAIRS + 1)]
        runs = [self.world.shadow_run(chosen, seed) for seed in range(1, PAIRS + 1)]
        if not self._accepts(bases, runs):
            return Ending("stay_off", chosen)
        self.reference = statistics.fmean(run.metric for run in (base, *bases))
        return Ending("promote", chosen)

    def probation(self, candidate: str) -> Ending:
        """A month of production; read to the letter, the first run that falls below reverts."""
        metrics: list[float] = []
        while len(metrics) < MONTH and not self.world.is_over:
            metrics.append(_production(self.world, candidate, len(metrics)).metric)
            below = self.reference - metrics[-1] > self.tolerance
            if below and not self.charitable:
                return Ending("revert", candidate)
        lost = self.reference - statistics.fmean(metrics) if metrics else 0.0
        verdict = "revert" if self.charitable and lost > self.tolerance else "permanent"
        return Ending(verdict, candidate)

    @property
    def _arms(self) -> tuple[Arm, ...]:
        return self.world.workload.candidates

    def _accepts(self, bases: list[FullRun], runs: list[FullRun]) -> bool:
        speedup = _mean_hours(bases) / _mean_hours(runs)
        lost = _mean_metric(bases) - _mean_metric(runs)
        apart = abs(lost) if self.reading == "letter" else lost
        return speedup >= self.bar and apart <= self.tolerance


@dataclass
class Textbook:
    """Welch's test at a number of runs fixed beforehand, all of them dedicated."""

    world: World
    bases: list[FullRun] = field(default_factory=list)

    def trial(self) -> Ending:
        """Fastest candidate first, until one passes both tests."""
        workload, bases = self.world.workload, self.bases
        pilots = {arm.name: [self._run(arm.name, 0)] for arm in workload.candidates}
        self._need(bases, 1)
        level = ALPHA / len(workload.candidates)
        open_verdict = "stay_off"
        for name in sorted(pilots, key=lambda name: pilots[name][0].hours):
            if bases[0].hours / pilots[name][0].hours < 1.0:
                continue
            size = self._size(bases, level)
            if size > MOST_RUNS:
                open_verdict = "inconclusive"
                continue
            self._need(bases, size)
            runs = pilots[name]
            runs += [self._run(name, seed) for seed in range(len(runs), size)]
            if _ruled_out(bases, runs, workload.margin, level) and _faster(bases, runs, level):
                return Ending("promote", name)
            if _mean_hours(bases) / _mean_hours(runs) >= REJECT:
                open_verdict = "inconclusive"
        return Ending(open_verdict, None)

    def probation(self, candidate: str) -> Ending:
        """One test after the month: a proven loss reverts."""
        metrics: list[float] = []
        while len(metrics) < MONTH and not self.world.is_over:
            metrics.append(_production(self.world, candidate, len(metrics)).metric)
        if len(metrics) < 2:
            return Ending("permanent", candidate)
        t, df = welch(metrics, [run.metric for run in self.bases])
        return Ending("revert" if upper_tail(-t, df) <= ALPHA else "permanent", candidate)

    def _run(self, name: str, seed: int) -> FullRun:
        return self.world.shadow_run(name, seed)

    def _need(self, bases: list[FullRun], size: int) -> None:
        """One period of production for each round of parallel runs."""
        if len(bases) < size:
            self.world.account.periods += 1
            bases += [self._run(BASELINE, seed) for seed in range(len(bases), size)]

    def _size(self, bases: list[FullRun], level: float) -> int:
        metrics: list[float] = list(self.world.workload.history)
        if len(metrics) < MIN_HISTORY:
            self._need(bases, PILOTS)
            metrics = [run.metric for run in bases]
        return runs_needed(statistics.stdev(metrics) / self.world.workload.margin, level)


def runs_needed(ratio: float, level: float) -> int:
    """Runs of each arm that prove the margin with the chance POWER at no loss."""
    for n in range(2, MOST_RUNS + 1):
        df = 2 * (n - 1)
        if 1 / (ratio * math.sqrt(2 / n)) >= quantile(1 - level, df) + quantile(POWER, df):
            return n
    return MOST_RUNS + 1


def welch(ours: list[float], theirs: list[float], shift: float = 0.0) -> tuple[float, float]:
    """Welch's t of mean(ours) - mean(theirs) + shift, and its degrees of freedom."""
    a, b = statistics.variance(ours) / len(ours), statistics.variance(theirs) / len(theirs)
    if a + b == 0:
        return math.inf, 1.0
    df = (a + b) ** 2 / (a**2 / (len(ours) - 1) + b**2 / (len(theirs) - 1))
    gap = statistics.fmean(ours) - statistics.fmean(theirs) + shift
    return gap / math.sqrt(a + b), df


def _ruled_out(bases: list[FullRun], runs: list[FullRun], margin: float, level: float) -> bool:
    t, df = welch([run.metric for run in runs], [run.metric for run in bases], margin)
    return upper_tail(t, df) <= level


def _faster(bases: list[FullRun], runs: list[FullRun], level: float) -> bool:
    base = [math.log(run.hours) for run in bases]
    t, df = welch(base, [math.log(run.hours) for run in runs], -math.log(REJECT))
    return upper_tail(t, df) <= level


def _production(world: World, candidate: str, since: int) -> FullRun:
    return world.production_run(candidate, FIRST_PRODUCTION_SEED + since, since_promotion=since)


def _mean_hours(runs: list[FullRun]) -> float:
    return statistics.fmean(run.hours for run in runs)


def _mean_metric(runs: list[FullRun]) -> float:
    return statistics.fmean(run.metric for run in runs)
