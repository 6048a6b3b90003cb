"""How often, and with how many runs, the shipped judge proves a small gain on real walls.

    python -m benchmarks.small_gains [--trials 400] [--jobs 2] [--cells "S 1.02"]

Each trial is of one group of runs of the same code. Its walls are drawn with replacement, those of
the candidate divided by the speed-up; blocks are real segments of two processes on one machine. The
bar is 1.0. Quality is simulated and held: its sd is 0.2 margins. Results go to results.json, those
of cells that are played again in place of the old ones, and into the page.
"""

from __future__ import annotations

import csv
import math
import sys
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.decision.driver import Driver
from benchmarks.decision.play import NO_BUDGET
from benchmarks.decision.truth import BASELINE, Arm, Steps, Workload
from benchmarks.decision.world import FullRun, World
from benchmarks.small_gains.command import play_cells, show
from compilegate.domain.spreads import Measured, learn, sample_of
from compilegate.domain.workload.model import Policy

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
SEED, PAST, CAMPAIGN = 41, 12, 4
# Between campaigns of one code, and of blocks about whole jobs (root mean squares).
BETWEEN, MISSED = 0.02, 0.0095
# A minute of real training stands for an hour and a half.
LONGER = 60
STEPS = 1500
# Candidate runs that a small gain may take.
MOST = 36


@dataclass(frozen=True)
class Cell:
    """One kind of trial; ``past`` is real, "calm" (a tenth of the spread), "none" or "minutes".

    ``others``: of so many other workloads trials have been made on the instance type.
    ``slower``: from the tenth run on, runs of both arms take so much longer. ``missed``: blocks
    are off whole jobs by chance with this sd.
    """

    name: str
    speedup: float
    past: str = "real"
    slower: float = 0.0
    missed: float = 0.0
    others: int = 6
    bar: float = 1.0
    rounded: bool = False


SPEEDUPS = (1.02, 1.013, 1.005, 1.0)
CELLS = (
    *(Cell(f"S {speedup:g}", speedup) for speedup in SPEEDUPS),
    *(Cell(f"S {s:g}, nothing learned", s, past="none", others=0) for s in SPEEDUPS),
    *(Cell(f"S {s:g}, own past alone", s, others=0) for s in SPEEDUPS),
    *(Cell(f"S {s:g}, others alone", s, past="none") for s in SPEEDUPS),
    *(Cell(f"S {s:g}, blocks off by 0.95 %", s, missed=MISSED) for s in SPEEDUPS),
    Cell("S 1, a calm past", 1.0, past="calm", missed=MISSED),
    Cell("S 1, slower half-way", 1.0, slower=0.03, missed=MISSED),
    Cell("S 1, walls in minutes", 1.0, past="minutes", rounded=True, missed=MISSED),
    Cell("S 1.02, slower half-way", 1.02, slower=0.03),
    Cell("S 1.05, which is the bar", 1.05, missed=MISSED, bar=1.05),
    Cell("S 1.05, which is the bar, a calm past", 1.05, past="calm", missed=MISSED, bar=1.05),
)


@dataclass(frozen=True)
class Played:
    """What became of one trial; ``covered``: the interval has the true speed-up."""

    promoted: bool
    runs: int
    covered: bool | None
    code: str


def read(name: str) -> dict[str, list[str]]:
    """The rows of a file by group."""
    lines = [one for one in (HERE / "data" / name).read_text().splitlines() if one[0] != "#"]
    found = defaultdict[str, list[str]](list)
    for group, values in list(csv.reader(lines))[1:]:
        found[group].append(values)
    return found


@dataclass
class RealSeconds(World):
    """A world whose walls and blocks are those of real runs."""

    cell: Cell = field(default_factory=lambda: Cell("", 1.0))
    walls: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    segments: tuple[tuple[float, ...], ...] = ()
    made: int = 0
    _off: float | None = None

    def wall(self, factor: float = 1.0) -> float:
        """Seconds of one run of a whole job."""
        wall = float(self.rng.choice(self.walls)) * LONGER / factor
        return 60 * round(wall / 60) if self.cell.rounded else wall

    def times_faster(self, name: str) -> float:
        """How many times as fast as the baseline an arm is."""
        return 1.0 if name == BASELINE else self.cell.speedup

    def _run(self, arm: Arm, seed: int, lost: float) -> FullRun:
        self.made += 1
        slower = 1 + self.cell.slower if self.made > 10 else 1.0
        wall = self.wall(self.times_faster(arm.name) / slower)
        return FullRun(self._metric(arm, seed, lost), wall / 3600)

    def block(self, arms: list[str], steps: int) -> dict[str, tuple[list[float], float]]:
        """A process of each arm on one machine, of so many steps at most."""
        if self._off is None:
            self._off = math.exp(self.cell.missed * self.rng.standard_normal())
        found = {}
        for name in arms:
            factor = 1.0 if name == BASELINE else self.times_faster(name) * self._off
            own = self.segments[int(self.rng.integers(len(self.segments)))]
            found[name] = ([LONGER * step / 1000 / factor for step in own[:steps]], 0.0)
        return found


def play(cell: Cell, index: int) -> Played:
    """The trial of that number."""
    walls, steps = read("walls.csv"), read("steps.csv")
    rng = np.random.default_rng((SEED, zlib.crc32(cell.name.encode()), index))
    group = list(walls)[index % len(walls)]
    seconds = np.array([float(one) for one in walls[group]])
    pair = list(steps)[index % len(steps)]
    workload = Workload(
        name="small-gain", margin=1.0, spread=0.2, level=0.0,
        history=tuple(0.2 * rng.standard_normal(8)), history_pace=(),
        steps=Steps(1.0, STEPS, 0.0, 0.0), devices=8, runs_per_week=7, weeks_left=104,
        arms=(Arm(BASELINE), Arm("candidate", only_compiler=False)),
    )  # fmt: skip
    world = RealSeconds(
        workload, rng, cell=cell, walls=seconds,
        segments=tuple(tuple(map(float, one.split())) for one in steps[pair]),
    )  # fmt: skip
    policy = Policy(
        min_mean_speedup=cell.bar, min_proven_speedup=cell.bar, quality_runs="hybrid",
        max_quality_runs=MOST, max_trial_usd=NO_BUDGET,
    )  # fmt: skip
    driver = Driver(world, policy)
    driver.evidence = replace(
        driver.evidence,
        plan=replace(driver.evidence.plan, spreads=learn(*past(cell, world))),
    )
    ending = driver.trial()
    ends = ending.speedup.interval if ending.speedup else None
    return Played(
        ending.verdict == "promote",
        len(driver.evidence.arms[1].quality),
        None if ends is None else bool(ends[0] <= cell.speedup <= ends[1]),
        ending.reasons[0].code if ending.reasons else "",
    )


def past(
    cell: Cell, world: RealSeconds
) -> tuple[str, str, list[float], list[tuple[str, Measured]]]:
    """Production's walls, of several campaigns that are 2 % apart."""
    made = []
    for run in range(0 if cell.past == "none" else PAST):
        if run % CAMPAIGN == 0:
            campaign = math.exp(BETWEEN * world.rng.standard_normal())
        wall = world.wall()
        if cell.past == "calm":
            usual = LONGER * float(np.mean(world.walls))
            wall, campaign = usual * (wall / usual) ** 0.1, 1.0
        made.append(campaign * wall)
    if cell.rounded:
        made = [60.0 * round(wall / 60) for wall in made]
    machine, names = "ml.p5.48xlarge", list(read("walls.csv"))
    others = []
    for name in world.rng.choice(names, cell.others, replace=False):
        walls = np.log([float(one) for one in read("walls.csv")[name]])
        groups = [sample_of(world.rng.choice(walls, 5).tolist()) for _ in range(2)]
        others.append((str(name), Measured(machine, groups[0] + groups[1])))
    return "small-gain", machine, made, others


def figures(cell: Cell, found: list[Played]) -> Mapping[str, Any]:
    """Shares in per cent with their standard errors, means of runs."""
    promoted = [one for one in found if one.promoted]
    known = [one.covered for one in found if one.covered is not None]
    share, n = len(promoted) / len(found), len(found)
    codes = defaultdict[str, int](int)
    for one in found:
        codes[one.code] += not one.promoted
    return {
        "cell": cell.name,
        "trials": n,
        "promoted_percent": round(100 * share, 2),
        "se": round(100 * math.sqrt(share * (1 - share) / n), 2),
        "runs_of_promoted": round(float(np.mean([one.runs for one in promoted])), 2)
        if promoted
        else None,
        "promoted_within_6_percent": round(100 * sum(one.runs <= 6 for one in promoted) / n, 2),
        "interval_covers_percent": round(100 * sum(known) / len(known), 2) if known else None,
        "why_not": {code: count for code, count in sorted(codes.items()) if count},
    }


def _play(asked: tuple[Cell, int]) -> Played:
    return play(*asked)


def write_page(cells: Sequence[Mapping[str, Any]]) -> None:
    """The table of the page, between its markers."""
    head = [
        "speed-up, %",
        "promoted",
        "candidate runs",
        "in at most 6",
        "interval covers",
        "trials",
    ]
    rows = []
    for one in cells:
        promoted = f"{one['promoted_percent']:.1f} ± {one['se']:.1f}"
        runs = one["runs_of_promoted"]
        rows.append([
            one["cell"], promoted, f"{runs:.1f}" if runs else "-",
            f"{one['promoted_within_6_percent']:.0f}", f"{one['interval_covers_percent']:.1f}",
            str(one["trials"]),
        ])  # fmt: skip
    show("gains", head, rows)


def main() -> None:
    """Play what was asked for."""
    play_cells(sys.modules[__name__], CELLS, _play, figures, trials=400)


if __name__ == "__main__":
    main()
