"""Runs and price of a small gain where nodes differ: whole runs in pairs, and each in a job.

    python -m benchmarks.small_gains.pairs [--trials 200] [--jobs 2]

As the other cells, in shadow mode, with walls of one group that are multiplied by a node's own pace
(sd 2 %), which the runs of a job share. Blocks miss whole jobs by 0.95 % (sd). Results go to
pairs.json and into the page.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.decision.driver import Driver
from benchmarks.decision.play import NO_BUDGET
from benchmarks.decision.truth import BASELINE, Arm, Steps, Workload
from benchmarks.decision.world import FullRun
from benchmarks.small_gains.__main__ import (
    HERE,
    LONGER,
    MISSED,
    MOST,
    SEED,
    STEPS,
    Cell,
    RealSeconds,
)
from benchmarks.small_gains.__main__ import read as read_data
from benchmarks.small_gains.command import play_cells, show
from compilegate.domain.decision import QualityStep
from compilegate.domain.planning.estimate import STARTUP_HOURS
from compilegate.domain.planning.plan import RUNS_OF_A_JOB
from compilegate.domain.spreads import Measured, learn, sample_of
from compilegate.domain.workload.model import Policy

RESULTS = HERE / "pairs.json"
NODE, RUN_HOURS = 0.02, 0.25
OTHERS, BLOCKS = 6, 3


@dataclass(frozen=True)
class Nodes:
    """One kind of trial; ``favour``: a node makes the candidate faster, with this sd.

    ``slower``: every second job takes so much longer from a run within it on.
    """

    speedup: float
    pairs: bool
    slower: float = 0.0
    favour: float = 0.0

    @property
    def name(self) -> str:
        """As the page has it."""
        more = [f"slower by {100 * self.slower:g} % within half of the jobs"] * bool(self.slower)
        more += [f"nodes favour an arm by {100 * self.favour:g} % (sd)"] * bool(self.favour)
        how = "in pairs" if self.pairs else "each in a job"
        return ", ".join([f"S {self.speedup:g}", how, *more])


CELLS = (
    *(Nodes(speedup, pairs) for speedup in (1.02, 1.01, 1.0) for pairs in (False, True)),
    *(Nodes(s, True, slower=0.03) for s in (1.02, 1.0)),
    *(Nodes(s, True, favour=0.005) for s in (1.02, 1.0)),
)


@dataclass
class OnNodes(RealSeconds):
    """Walls of real runs on nodes of different pace; a new node begins with every job."""

    nodes: Nodes = field(default_factory=lambda: Nodes(1.0, False))
    place: int = 0
    _pace: float = 1.0
    _favour: float = 1.0
    _slow_from: int = RUNS_OF_A_JOB

    def begin_job(self) -> None:
        """On another node."""
        rng, self.place = self.rng, 0
        self._pace = math.exp(NODE * rng.standard_normal())
        self._favour = math.exp(self.nodes.favour * rng.standard_normal())
        self._slow_from = int(rng.integers(1, RUNS_OF_A_JOB)) if rng.random() < 0.5 else 4

    def _run(self, arm: Arm, seed: int, lost: float) -> FullRun:
        faster = 1.0 if arm.name == BASELINE else self.nodes.speedup * self._favour
        slower = 1 + self.nodes.slower * (self.place >= self._slow_from)
        self.place += 1
        return FullRun(
            self._metric(arm, seed, lost), self.wall(faster) * self._pace * slower / 3600
        )


@dataclass
class InJobs(Driver):
    """Makes the runs of a step in the jobs that the plan says; ``jobs`` counts them."""

    jobs: int = 0

    def _shadow(self, step: QualityStep) -> None:
        of_a_job = RUNS_OF_A_JOB if self.evidence.plan.pairs else 1
        for place, run in enumerate(step.runs):
            if place % of_a_job == 0:
                self.jobs += 1
                self.world.begin_job()  # type: ignore[attr-defined]
            made = self.world.shadow_run(run.arm, run.seed)
            self._record(run.arm, made, mode="shadow", seed=run.seed)

    def _steps(self, name: str, made: FullRun) -> Mapping[str, Any]:
        return {**super()._steps(name, made), "job": f"job{self.jobs}"}


def play(asked: tuple[Nodes, int]) -> tuple[bool, int, float]:
    """Whether the trial of that number promoted, its candidate's runs, its hours of full runs."""
    nodes, index = asked
    walls, steps = read_data("walls.csv"), read_data("steps.csv")
    rng = np.random.default_rng((SEED, zlib.crc32(nodes.name.encode()), index))
    seconds = np.array([float(one) for one in walls[list(walls)[index % len(walls)]]])
    pair = list(steps)[index % len(steps)]
    workload = Workload(
        name="small-gain", margin=1.0, spread=0.2, level=0.0,
        history=tuple(0.2 * rng.standard_normal(8)), history_pace=(),
        steps=Steps(1.0, STEPS, 0.0, 0.0), devices=8, runs_per_week=7, weeks_left=104,
        arms=(Arm(BASELINE), Arm("candidate", only_compiler=False)),
    )  # fmt: skip
    world = OnNodes(
        workload, rng, nodes=nodes, walls=seconds,
        cell=Cell(nodes.name, nodes.speedup, missed=MISSED),
        segments=tuple(tuple(map(float, one.split())) for one in steps[pair]),
    )  # fmt: skip
    policy = Policy(
        min_mean_speedup=1.0, min_proven_speedup=1.0, quality_runs="shadow",
        max_quality_runs=MOST, max_trial_usd=NO_BUDGET,
    )  # fmt: skip
    driver = InJobs(world, policy)
    machine = "ml.g5.xlarge"
    spreads = learn(
        "small-gain", machine, (), [(f"other{n}", _shown(world)) for n in range(OTHERS)]
    )
    plan = replace(
        driver.evidence.plan, spreads=spreads, pairs=nodes.pairs, production_beside=False
    )
    driver.evidence = replace(driver.evidence, plan=plan)
    ending = driver.trial()
    made = sum(len(arm.quality) for arm in driver.evidence.arms)
    hours = made * RUN_HOURS + driver.jobs * STARTUP_HOURS
    return ending.verdict == "promote", len(driver.evidence.arms[1].quality), hours


def _shown(world: OnNodes) -> Measured:
    """What a trial of another workload has shown: blocks, and runs of each arm in single jobs."""
    runs = NODE * world.rng.standard_normal((2, BLOCKS)) + np.log(
        world.rng.choice(world.walls, (2, BLOCKS)) * LONGER
    )
    ratios = []
    for _ in range(BLOCKS):
        one, other = (np.mean(world.block([BASELINE], STEPS)[BASELINE][0]) for _ in range(2))
        ratios.append(math.log(one / other))
    whole = sample_of(runs[0].tolist()) + sample_of(runs[1].tolist())
    return Measured("ml.g5.xlarge", whole_job=whole, block=sample_of(ratios))


def figures(nodes: Nodes, played: Sequence[tuple[bool, int, float]]) -> Mapping[str, Any]:
    """Shares in per cent, means of runs and hours, of the trials that promoted and of all."""
    promoted = [one for one in played if one[0]]
    share, count = len(promoted) / len(played), len(played)
    return {
        "cell": nodes.name, "trials": count,
        "promoted_percent": round(100 * share, 2),
        "se": round(100 * math.sqrt(share * (1 - share) / count), 2),
        "runs_of_promoted": round(float(np.mean([n for _, n, _ in promoted])), 2)
        if promoted else None,
        "hours_of_full_runs": round(float(np.mean([hours for *_, hours in played])), 2),
    }  # fmt: skip


def write_page(cells: Sequence[Mapping[str, Any]]) -> None:
    """The table of the page, between its markers."""
    head = ["nodes differ by 2 %", "promoted, %", "candidate runs", "hours of full runs", "trials"]
    rows = [
        [
            one["cell"], f"{one['promoted_percent']:.1f} ± {one['se']:.1f}",
            f"{one['runs_of_promoted']:.1f}" if one["runs_of_promoted"] else "-",
            f"{one['hours_of_full_runs']:.1f}", str(one["trials"]),
        ]
        for one in cells
    ]  # fmt: skip
    show("pairs", head, rows)


def main() -> None:
    """Play what was asked for."""
    play_cells(sys.modules[__name__], CELLS, play, figures, trials=200)


if __name__ == "__main__":
    main()
