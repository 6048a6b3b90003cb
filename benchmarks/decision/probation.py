"""How well is production watched after a promotion? Simulated runs, the shipped rules.

Before every run the shipped rule says which arm trains (domain/production/begin.py), the run
joins the evidence as TRAIN records it (domain/production/probation.py), and the shipped judge
reviews it, until it reverts or makes the promotion permanent. Jobs, nodes and noise are those of
the study's generator (portfolio.py, truth.py). Cells differ in what is wrong with the candidate,
what changes for both arms, the spread of the metric, and how often a run is one of the baseline.

    python -m benchmarks.decision.probation [--workloads 400] [--faultless 2000] [--jobs 2]
        [--output FILE]

The tables in benchmarks/decision/README.md are made from the file by
``python -m benchmarks.decision --document``.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import sys
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decision.noise import noise
from benchmarks.decision.portfolio import MARGIN, draw
from benchmarks.decision.provenance import judge_name
from benchmarks.decision.truth import BASELINE, Stress, Workload, unit_mean_factor
from compilegate.domain.decision import ProbationStep, Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.probation import judge_probation
from compilegate.domain.production.begin import (
    FLAG,
    REFRESH_EVERY,
    Choice,
    FlagReading,
    Situation,
    next_arm,
)
from compilegate.domain.production.history import Promotion
from compilegate.domain.production.probation import probation_document
from compilegate.domain.records.production import TEAM, TRAIN, ProductionRun, Review

RESULTS = Path(__file__).with_name("probation.json")
CANDIDATE = "compile-1"
DAY = 86_400
SEED = 6
# Runs, one a day, after which a probation that has not ended is left: 12 watched, and alarms of up
# to 12 pairs each; a team's pipeline trains one baseline in six runs.
MAX_RUNS = 144
# Full runs of each arm that the trial had made; the rest of the reference is history.
TRIAL_RUNS = 3
# A step changes both arms from one of these runs on.
STEP_RUNS = (2, 9)
NEVER = 10**6
# Correlation of one night with the next, where nights differ: a first-order autoregression.
NIGHT_MEMORY = 0.8
STRESS = Stress()


@dataclass(frozen=True)
class Condition:
    """What happens after the promotion; metrics in margins, positive is worse.

    ``loss`` and ``slow`` (the whole speed-up gone) are the candidate's, from run ``onset`` on;
    None is the run of the step. ``trend`` (a run), ``step`` and ``growth`` (share of the wall clock
    a run) are of the data, so that they hit both arms. ``nights`` is the share of the metric's
    variance that a night gives to whatever trains in it, with NIGHT_MEMORY from night to night.
    """

    loss: float = 0.0
    slow: bool = False
    onset: int | None = 0
    trend: float = 0.0
    step: float = 0.0
    growth: float = 0.0
    nights: float = 0.0


CONDITIONS = {
    "clean": Condition(),
    "loss": Condition(loss=1.0),
    "loss2": Condition(loss=2.0),
    "late": Condition(loss=2.0, onset=6),
    "slow": Condition(slow=True),
    "step": Condition(step=1.0),
    "trend": Condition(trend=1 / 6),
    "grows": Condition(growth=0.03),
    "masked": Condition(loss=1.0, onset=None, step=-1.0),
    "nights": Condition(nights=0.5),
    "loss50": Condition(loss=0.5),
    "loss75": Condition(loss=0.75),
}
SPREADS = (0.6, 1.0)
REFRESHES = (0, 3, 4, 6, 8)
# Conditions that are simulated with every refresh; the others with the shipped one.
BY_REFRESH = ("clean", "step", "trend", "grows", "masked")


@dataclass(frozen=True)
class Cell:
    """One thing simulated; ``spread`` of the metric in margins, ``refresh`` 0 is never.

    ``reference`` counts the baseline runs before the promotion. ``team``: a team's own pipeline
    trains, the baseline by chance, and cannot be asked for runs.
    """

    condition: str = "clean"
    spread: float = 0.6
    refresh: int = 0
    reference: int = 24
    team: bool = False


@dataclass
class Probation:
    """One workload after its promotion."""

    cell: Cell
    rng: np.random.Generator
    workload: Workload = field(init=False)
    step_run: int = field(init=False)
    trial: dict[str, Any] = field(init=False)
    promotion: Promotion = field(init=False)
    runs: list[ProductionRun] = field(default_factory=list)
    alarms: int = 0
    night: float | None = None

    def __post_init__(self) -> None:
        """Draw the job, fast and as good as the baseline, and the evidence of its trial."""
        drawn = draw(self.rng, "all_good", candidates=1)
        self.workload = replace(drawn, spread=self.cell.spread * MARGIN)
        self.step_run = int(self.rng.integers(*STEP_RUNS))
        self.trial = self._trial()
        flag = Flag(True, "probation", CANDIDATE, {"compiler": "torch_compile"}, "d")
        self.promotion = Promotion("trial", CANDIDATE, at=0, since=0, flag=flag, version=1)

    @property
    def onset(self) -> int:
        """The run from which the candidate is worse."""
        onset = CONDITIONS[self.cell.condition].onset
        return self.step_run if onset is None else onset

    def follow(self) -> str:
        """Run after run until it ends; ``open`` where it does not."""
        review: Review | None = None
        for index in range(MAX_RUNS):
            self._train(index, review)
            document = probation_document(self.trial, self.promotion, self.runs)
            decision = judge_probation(read_evidence(document), None)
            if decision.verdict is not Verdict.CONTINUE:
                return str(decision.verdict)
            alarmed = any(reason.code == "alarm" for reason in decision.reasons)
            self.alarms += alarmed and not (review and review.reason("alarm") is not None)
            step = decision.next if isinstance(decision.next, ProbationStep) else None
            review = Review(
                (index + 1) * DAY, "", "trial", CANDIDATE, next=step, reasons=decision.reasons
            )
        return "open"

    def _train(self, index: int, review: Review | None) -> None:
        chosen = self._chosen(review)
        metric, wall = self._outcome(chosen.arm, index)
        self.runs.append(
            ProductionRun(
                run=f"n{index:03d}",
                job=f"n{index:03d}",
                arm=chosen.arm,
                started_at=index * DAY,
                ended_at=index * DAY + DAY // 2,
                result=_result(metric, wall),
                counts=True,
                why=chosen.why,
                confirm=chosen.confirm,
                launched_by=TEAM if self.cell.team else TRAIN,
            )
        )

    def _chosen(self, review: Review | None) -> Choice:
        if self.cell.team:
            baseline = self.rng.random() < 1 / REFRESH_EVERY
            return Choice(BASELINE if baseline else CANDIDATE, FLAG)
        every = self.cell.refresh or NEVER
        reading = FlagReading(self.promotion.flag)
        return next_arm(Situation(reading, self.runs, review=review, refresh_every=every))

    def _outcome(self, arm: str, index: int) -> tuple[float, float]:
        """Metric and seconds of one run of production."""
        now = CONDITIONS[self.cell.condition]
        hit = arm != BASELINE and index >= self.onset
        worse = now.trend * index + now.step * (index >= self.step_run) + now.loss * hit
        gone = hit and now.slow
        metric, wall = self._draw(BASELINE if gone else arm)
        return metric - worse * MARGIN, wall * (1 + now.growth) ** index

    def _draw(self, arm: str) -> tuple[float, float]:
        """A run in which nothing is wrong."""
        job = self.workload
        deviation = float(noise(self.rng, 1, STRESS)[0])
        share = CONDITIONS[self.cell.condition].nights
        if share:
            deviation = math.sqrt(1 - share) * deviation + math.sqrt(share) * self._next_night()
        node = unit_mean_factor(self.rng, STRESS.node_sd)
        start = unit_mean_factor(self.rng, STRESS.restart_sd)
        wall = job.hours(job.arm(arm)) * 3600 * node * start
        return job.level + job.spread * deviation, wall

    def _next_night(self) -> float:
        """What this night does to any run, in standard deviations of it."""
        fresh = float(self.rng.standard_normal())
        before = self.night
        new = math.sqrt(1 - NIGHT_MEMORY**2)
        self.night = fresh if before is None else NIGHT_MEMORY * before + new * fresh
        return self.night

    def _trial(self) -> dict[str, Any]:
        """The evidence on which it was promoted, as far as the review reads it."""
        past = [self._draw(BASELINE) for _ in range(self.cell.reference - TRIAL_RUNS)]
        arms = []
        for index, name in enumerate((BASELINE, CANDIDATE)):
            drawn = [self._draw(name) for _ in range(TRIAL_RUNS)]
            full = [
                {"stage": "quality", "mode": "shadow", "order": 2 * i + index, **_result(*run)}
                for i, run in enumerate(drawn)
            ]
            arms.append({"name": name, "full_run_steps": 1000, "runs": full})
        return {
            "schema": 1,
            "workload": "simulated",
            "policy": {},
            "quality": {
                "metric": "accuracy",
                "goal": "maximize",
                "margin": MARGIN,
                "history": [metric for metric, _ in past],
                "history_wall_seconds": [wall for _, wall in past],
            },
            "arms": arms,
        }


@dataclass(frozen=True)
class Course:
    """How one probation went; ``exposed`` are the candidate's runs from the onset on."""

    verdict: str
    alarms: int
    runs: int
    exposed: int
    baselines: int


def play(cell: Cell, index: int, seed: int = SEED) -> Course:
    """One workload; the same whatever else is simulated, so that refreshes compare like."""
    name = f"{cell.condition} {cell.spread} {cell.reference}"
    key = [seed, zlib.crc32(name.encode()), index]
    probation = Probation(cell, np.random.default_rng(key))
    verdict = probation.follow()
    since = probation.runs[probation.onset :]
    return Course(
        verdict=verdict,
        alarms=probation.alarms,
        runs=len(probation.runs),
        exposed=sum(run.arm != BASELINE for run in since),
        baselines=sum(run.arm == BASELINE for run in probation.runs),
    )


def summary(cell: Cell, courses: list[Course]) -> dict[str, Any]:
    """A cell's figures: shares in per cent with their standard error."""
    reverted = [course for course in courses if course.verdict == "revert"]
    n, share = len(courses), len(reverted) / len(courses)
    return {
        **asdict(cell),
        "n": n,
        "reverted": {"percent": 100 * share, "se": 100 * math.sqrt(share * (1 - share) / n)},
        "alarms": sum(course.alarms for course in courses) / n,
        "runs": sum(course.runs for course in courses) / n,
        "baseline_runs": sum(course.baselines for course in courses) / n,
        "exposed": statistics.median([c.exposed for c in reverted]) if reverted else None,
        "open": sum(course.verdict == "open" for course in courses),
    }


def cells() -> Iterator[Cell]:
    """Everything that is simulated."""
    for condition in CONDITIONS:
        for spread in SPREADS:
            for refresh in REFRESHES if condition in BY_REFRESH else (REFRESH_EVERY,):
                yield Cell(condition, spread, refresh)
    for spread in SPREADS:
        for refresh in (0, REFRESH_EVERY):
            yield Cell("clean", spread, refresh, reference=8)
        yield Cell("clean", spread, REFRESH_EVERY, reference=TRIAL_RUNS)
        for condition in ("clean", "loss", "loss2", "step"):
            yield Cell(condition, spread, REFRESH_EVERY, team=True)


def run(cell: Cell, workloads: int, jobs: int, seed: int = SEED) -> dict[str, Any]:
    """One cell; the same figures whatever the number of processes."""
    tasks = [(cell, index, seed) for index in range(workloads)]
    if jobs <= 1:
        return summary(cell, [play(*task) for task in tasks])
    with multiprocessing.Pool(jobs) as pool:
        return summary(cell, pool.starmap(play, tasks, chunksize=20))


def main() -> None:
    """Simulate every cell and write the file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decision.probation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workloads", type=int, default=400, help="workloads a cell")
    parser.add_argument(
        "--faultless", type=int, default=2000,
        help="the same where nothing changes and nothing is wrong: rare reverts take more",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = []
    for cell in cells():
        workloads = options.faultless if cell.condition == "clean" else options.workloads
        results.append(run(cell, workloads, options.jobs, options.seed))
        print(f"{len(results)}: {cell}", file=sys.stderr, flush=True)
    table = {"seed": options.seed, "judge": judge_name(), "cells": results}
    options.output.write_text(json.dumps(table, indent=1) + "\n")


def _result(metric: float, wall: float) -> dict[str, Any]:
    return {"metric": metric, "wall_seconds": wall, "finished": True, "applied": True}


if __name__ == "__main__":
    main()
