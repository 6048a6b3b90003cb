"""What happens when a workload's jobs run, and the account of what that cost.

Jobs are dedicated (a probe, a shadow run: extra GPU-hours) or scheduled production runs, which
cost nothing extra but time, and exposure where a bad arm makes them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.decision.noise import nights, noise, rounded, with_night
from benchmarks.decision.truth import (
    BASELINE,
    USD_PER_DEVICE_HOUR,
    Arm,
    Workload,
    segment,
    unit_mean_factor,
)

# Nights drawn at once: more than a trial and a probation take.
NIGHTS = 400


@dataclass(frozen=True)
class FullRun:
    """One complete job."""

    metric: float
    hours: float


@dataclass
class Account:
    """What a procedure spent and risked; hours are of a whole job, all its devices."""

    probe_hours: float = 0.0
    shadow_hours: float = 0.0
    periods: int = 0  # production runs that went by, of any arm
    bad_runs: int = 0  # of these, made by an arm that is bad
    saved_hours: float = 0.0  # against the baseline, in runs whose quality held

    @property
    def dedicated_hours(self) -> float:
        """Hours that only the procedure needed."""
        return self.probe_hours + self.shadow_hours


@dataclass
class World:
    """Runs jobs of one workload and keeps the account."""

    workload: Workload
    rng: np.random.Generator
    account: Account = field(default_factory=Account)
    _seeds: dict[int, float] = field(default_factory=dict)
    _full_runs: Counter[str] = field(default_factory=Counter)  # of each arm
    _walked: float = 0.0
    _walked_periods: int = 0
    _nights: list[float] = field(default_factory=list)

    def block(self, arms: list[str], steps: int) -> dict[str, tuple[list[float], float]]:
        """Every arm once in a fresh process on one node, as dedicated hours."""
        node = unit_mean_factor(self.rng, self.workload.stress.node_sd)
        segments = {}
        for name in arms:
            arm = self.workload.arm(name)
            segments[name] = segment(self.rng, self.workload, arm, steps=steps, node=node)
            self.account.probe_hours += sum(segments[name][0]) / 3600
        return segments

    def shadow_run(self, name: str, seed: int) -> FullRun:
        """A dedicated complete job."""
        arm = self.workload.arm(name)
        run = self._run(arm, seed, self._lost(arm))
        self.account.shadow_hours += run.hours
        return run

    def production_run(self, name: str, seed: int, *, since_promotion: int = -1) -> FullRun:
        """A scheduled run; ``since_promotion`` counts the runs since the arm was promoted."""
        arm = self.workload.arm(name)
        lost = self._lost(arm, since_promotion)
        run = self._run(arm, seed, lost)
        self._book(arm, lost, 1)
        return run

    def run_out(self, name: str, *, since_promotion: int = 0) -> None:
        """All runs that are left until the horizon, made by one arm."""
        arm = self.workload.arm(name)
        left = self.workload.runs_left - self.account.periods
        sound = left
        if arm.regresses_at is not None:
            sound = min(left, max(0, arm.regresses_at - since_promotion))
        self._book(arm, arm.loss, sound)
        self._book(arm, arm.loss + arm.regression, left - sound)

    @property
    def is_over(self) -> bool:
        """Whether production has no runs left before the horizon."""
        return self.account.periods >= self.workload.runs_left

    def _book(self, arm: Arm, loss: float, runs: int) -> None:
        """Enter production runs: a run below the margin saves nothing."""
        if runs <= 0:
            return
        self.account.periods += runs
        if arm.name == BASELINE:
            return
        if loss < self.workload.margin:
            saved = self.workload.hours(self.workload.arms[0]) - self.workload.hours(arm)
            self.account.saved_hours += runs * saved
        self.account.bad_runs += runs * self.workload.is_bad(arm)

    def _lost(self, arm: Arm, since_promotion: int = -1) -> float:
        """What the arm's next run loses."""
        if self._full_runs[arm.name] < self.workload.stress.lost_from:
            return 0.0
        return loss_at(arm, since_promotion)

    def _run(self, arm: Arm, seed: int, lost: float) -> FullRun:
        stress = self.workload.stress
        pace = unit_mean_factor(self.rng, stress.node_sd)
        pace *= unit_mean_factor(self.rng, stress.restart_sd)
        metric = self._metric(arm, seed, lost)
        self._full_runs[arm.name] += 1
        return FullRun(metric, self.workload.hours(arm) * pace)

    def _metric(self, arm: Arm, seed: int, lost: float) -> float:
        workload, stress = self.workload, self.workload.stress
        expected = workload.level + workload.spread * self._moved() - lost
        deviation = self._deviation(arm, seed)
        if stress.nights:
            deviation = with_night(deviation, self._night(), stress)
        return rounded(expected + workload.spread * arm.spread_ratio * deviation, stress.examples)

    def _night(self) -> float:
        """What this night does to any run."""
        while len(self._nights) <= self.account.periods:
            self._nights.extend(nights(self.rng, NIGHTS, self.workload.stress).tolist())
        return self._nights[self.account.periods]

    def _moved(self) -> float:
        """How far the metric has moved by this run, in sd of a seed, whatever the arm."""
        stress, periods = self.workload.stress, self.account.periods
        if stress.walk and periods > self._walked_periods:
            steps = self.rng.standard_normal(periods - self._walked_periods)
            self._walked += stress.walk * float(steps.sum())
            self._walked_periods = periods
        return self._walked + stress.trend * self._full_runs.total()

    def _deviation(self, arm: Arm, seed: int) -> float:
        """Chance of one run; a shared seed makes arms alike as far as they correlate."""
        own = self._noise()
        if arm.name == BASELINE:
            return self._seeds.setdefault(seed, own)
        if not arm.correlation:
            return own
        shared = self._seeds.setdefault(seed, self._noise())
        return arm.correlation * shared + math.sqrt(1 - arm.correlation**2) * own

    def _noise(self) -> float:
        return float(noise(self.rng, 1, self.workload.stress)[0])


def loss_at(arm: Arm, since_promotion: int) -> float:
    """The arm's loss in its n-th production run since promotion (0 is the first)."""
    regressed = arm.regresses_at is not None and since_promotion >= arm.regresses_at
    return arm.loss + arm.regression * regressed


def best_hours(workload: Workload, may: Callable[[Arm], bool]) -> float:
    """Hours that the best arm which one may turn on saves from the first run on; 0 without one."""
    base = workload.hours(workload.arms[0])
    savings = [0.0]
    for arm in workload.candidates:
        if may(arm):
            sound = workload.runs_left
            if arm.regresses_at is not None and arm.loss + arm.regression >= workload.margin:
                sound = min(sound, arm.regresses_at)
            savings.append(sound * (base - workload.hours(arm)))
    return max(savings)


def usd(workload: Workload, hours: float) -> float:
    """Price of hours of a whole job."""
    return hours * workload.devices * USD_PER_DEVICE_HOUR
