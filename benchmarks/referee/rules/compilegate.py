"""The shipped judge, asked as in production: short blocks first, then whole runs (hybrid mode).

Metrics are the trial's real runs. Seconds are simulated: the candidate is 1.5 times as fast, so
that quality alone decides. The candidate changes more than the compiler, so that full runs alone
decide and the equivalence check says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.decision.driver import Driver
from benchmarks.decision.play import policy
from benchmarks.decision.truth import BASELINE, Arm, Steps, Workload
from benchmarks.decision.world import World
from benchmarks.referee.trial import Rule, Trial

# A run of three hours, whose steps vary as those of the simulated workloads do.
STEPS = Steps(seconds=1.0, count=10_800, correlation=0.3, variation=0.05)
SPEEDUP = 1.5
RUNS_PER_WEEK, WEEKS = 7, 104


@dataclass
class RealRuns(World):
    """A world whose metrics are the trial's runs."""

    trial: Trial | None = None

    def _metric(self, arm: Arm, _seed: int, _lost: float) -> float:
        assert self.trial is not None
        return self.trial.baseline() if arm.name == BASELINE else self.trial.candidate()


def judged(trial: Trial) -> bool:
    """Whether the judge promotes the candidate."""
    workload = Workload(
        name="real-runs",
        margin=trial.margin,
        spread=0.0,
        level=0.0,
        history=trial.past,
        history_pace=(1.0,) * len(trial.past),
        steps=STEPS,
        devices=8,
        runs_per_week=RUNS_PER_WEEK,
        weeks_left=WEEKS,
        arms=(Arm(BASELINE), Arm("candidate", steady_ratio=SPEEDUP, only_compiler=False)),
    )
    world = RealRuns(workload, np.random.default_rng(trial.seed), trial=trial)
    try:
        return Driver(world, policy("hybrid")).trial().verdict == "promote"
    finally:
        trial.other = world.account.probe_hours / workload.hours(workload.arms[0])


RULES: dict[str, Rule] = {"Compilegate": judged}
