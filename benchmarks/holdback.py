"""Simulated: how true the saving is that is booked after a promotion, how soon its loss is seen.

Production's runs are drawn whose truth is known; which of them train the baseline is what
production itself would choose. Of each month, closed two weeks after its end, the booked saving is
compared with what the runs have saved by their expected prices.

    python -m benchmarks.holdback
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from benchmarks import checks, results
from compilegate.domain import naming, utc
from compilegate.domain.flag import Flag
from compilegate.domain.followers import REFRESH_EVERY, chance
from compilegate.domain.production.begin import FlagReading, Situation, next_arm
from compilegate.domain.production.holdback import holds_back, share_of
from compilegate.domain.production.ratio import NORMAL_QUANTILE
from compilegate.domain.production.savings import OPEN_SECONDS, run_savings, sum_of
from compilegate.domain.production.slower import speed_sum
from compilegate.domain.records.production import ProductionRun, SpeedSum
from compilegate.domain.workload.model import BASELINE, Workload
from compilegate.usecases.records import read_document

WEEK, MONTH = 7 * 86_400, 365.25 / 12 * 86_400
BEGIN = 1_788_220_800  # 2026-09-01
BASELINE_WEEKS, PROBATION_RUNS, WEEKS = 8, 14, 72
GROWTHS, SPREADS, SCHEDULES = (
    (-0.05, -0.03, 0.0, 0.03, 0.05),
    (0.005, 0.01, 0.02, 0.03),
    (1, 3, 7, 24),
)
SPEEDUPS, STEP = (1.1, 1.2, 4 / 3), 0.2
# Runs of a burst, seconds between them, and bursts a week.
BURSTS = ((4, 3600, 1 / 4), (3, 7200, 1 / 4), (3, 1800, 1 / 6), (4, 86_400, 1 / 4),
          (2, 10_800, 1 / 2), (8, 60, 1 / 4))  # fmt: skip
# As a trial measures it: its estimate, and the lower end of its interval.
MEASURED, LOWER_END = 4 / 3, 1.25
WORKLOADS = 30
CANDIDATE = "compile"
FLAGS = {
    state: FlagReading(Flag(True, state, CANDIDATE, {"compiler": "torch_compile"}, "d"), "text")
    for state in ("probation", "permanent")
}


@dataclass(frozen=True)
class Job:
    """Growth a month and spread of single runs are logarithms, ``usd`` is a first baseline run's.

    ``steps`` says what moves by a fifth twice in between: prices alone, or the data and with them
    the work of a run. After ``lost_week`` of the promotion ``lost`` of the speed-up's logarithm is
    gone. ``burst`` runs start together, ``apart`` seconds from one to the next.
    """

    runs_per_week: float
    spread: float
    growth: float = 0.0
    speedup: float = 4 / 3
    team: bool = False
    steps: str | None = None
    lost_week: float = math.inf
    lost: float = 0.0
    usd: float = 100.0
    # Not in the seed.
    burst: int = field(default=1, repr=False)
    apart: float = field(default=0.0, repr=False)


@dataclass(frozen=True)
class Made:
    """Production's runs, what each was expected to save (USD), and when the promotion was."""

    runs: Sequence[ProductionRun]
    saved: Mapping[str, float]
    promoted_at: float


def simulated(job: Job, seed: str) -> Made:
    """A workload's runs: the baseline's, a probation, and a year and more after it."""
    draw, name = random.Random(seed), f"w{seed}"
    workload, gap = _workload(job.runs_per_week, name), WEEK / job.runs_per_week
    promoted_at = BEGIN + BASELINE_WEEKS * WEEK
    moves = [(draw.uniform(0, WEEKS * WEEK), draw.choice((-STEP, STEP))) for _ in range(2)]
    runs: list[ProductionRun] = []
    saved = {}
    at, last = float(BEGIN), float(BEGIN)
    while at < BEGIN + WEEKS * WEEK:
        moved = sum(step for when, step in moves if at - BEGIN > when) if job.steps else 0.0
        grown = job.growth * (at - BEGIN) / MONTH
        price = job.usd * math.exp(grown + moved)
        lost = job.lost if at - promoted_at > job.lost_week * WEEK else 0.0
        faster = job.speedup ** (1 - lost)
        run = naming.trial_id(round(1000 * at))
        arm = BASELINE if at < promoted_at else _arm(job, workload, runs, run, (last, at))
        noise = math.exp(draw.gauss(0, job.spread))
        usd = price * noise / (1 if arm == BASELINE else faster)
        steps = 1000 * math.exp(grown + (0 if job.steps == "price" else moved))
        made = ProductionRun(
            run, f"cg-{run}", arm, at, at + 3600,
            {"finished": True, "wall_seconds": 36 * usd, "steps": steps,
             "work": {"steps": steps, "samples_per_step": 32.0}},
            counts=True, why="", usd=usd, at=round(at) + 3600,
        )  # fmt: skip
        saved[made.key] = 0.0 if arm == BASELINE else price * (1 - 1 / faster)
        runs.append(made)
        wait = job.apart if len(runs) % job.burst else gap * job.burst
        last, at = at, at + wait * draw.uniform(0.9, 1.1)
    return Made(runs, saved, promoted_at)


@cache
def _registered() -> Workload:
    return read_document(checks.documents(1)[0])


def _workload(runs_per_week: float, name: str) -> Workload:
    job = _registered()
    return replace(job, name=name, schedule=replace(job.schedule, runs_per_week=runs_per_week))


def _arm(
    job: Job, workload: Workload, runs: Sequence[ProductionRun], run: str,
    times: tuple[float, float],
) -> str:  # fmt: skip
    """As TRAIN chooses it, or by chance as a team's own pipeline does."""
    since = sum(one.arm == CANDIDATE for one in runs[-2 * PROBATION_RUNS :])
    state = "probation" if since < PROBATION_RUNS - 2 else "permanent"
    if job.team:
        share = share_of(workload, None) if state == "permanent" else 1 / REFRESH_EVERY
        return BASELINE if chance(workload.name, run, "2026-11-20") < share else CANDIDATE
    held = holds_back(
        workload, None, run=run, at=times[1], last=times[0],
        last_on_baseline=runs[-1].arm == BASELINE,
    )  # fmt: skip
    followed = Situation(FLAGS[state], runs=runs[-REFRESH_EVERY:], held_back=held)
    return next_arm(followed).arm


def months(made: Made) -> Iterator[tuple[float, float, float, int]]:
    """Of each whole month with runs after the promotion: booked, error, truth, unknown runs.

    The truth is that of the runs whose saving is known, 0 where it is of none.
    """
    month = utc.month_of(made.promoted_at + 31 * 86_400)
    while month[1] + OPEN_SECONDS <= BEGIN + WEEKS * WEEK:
        by_run = run_savings(made.runs, *month)
        booked = sum_of(by_run)
        truth = math.fsum(made.saved[one.run.key] for one in by_run if one.compared)
        if booked.runs:
            yield booked.micro_usd / 1e6, booked.se_micro_usd / 1e6, truth, booked.unknown_runs
        month = utc.month_of(month[1])


def coverage(job: Job, workloads: int) -> dict[str, Any]:
    """Shares of months and years whose 90 % interval holds the truth; errors as shares of it."""
    covered, errors, halves, years, unknown = [], [], [], [], 0
    for number in range(workloads):
        closed = [one for one in months(simulated(job, f"{job}{number}")) if one[2]]
        covered += [_holds(booked, error, truth) for booked, error, truth, _ in closed]
        errors += [abs(booked / truth - 1) for booked, _, truth, _ in closed]
        halves += [NORMAL_QUANTILE * error / truth for _, error, truth, _ in closed]
        booked, error, truth, left_out = (
            math.fsum(one[place] for one in closed[:12]) for place in range(4)
        )
        years.append((_holds(booked, error, truth), abs(booked / truth - 1)))
        unknown += round(left_out)
    return {
        "months": len(covered),
        "covered": sum(covered),
        "median_error": round(statistics.median(errors), 4),
        "median_half_width": round(statistics.median(halves), 4),
        "years": len(years),
        "years_covered": sum(holds for holds, _ in years),
        "median_year_error": round(statistics.median(error for _, error in years), 4),
        "unknown_runs_a_year": round(unknown / workloads, 1),
    }


def in_bursts(job: Job, workloads: int) -> dict[str, Any]:
    """Months whose saving is known; the worst error as a share of the truth, sums in USD."""
    made = [simulated(job, f"{job}{number}") for number in range(workloads)]
    closed = [one for of in made for one in months(of)]
    known = [(booked, error, truth) for booked, error, truth, _ in closed if truth]
    return {
        "months": len(closed),
        "known": len(known),
        "covered": sum(_holds(*one) for one in known),
        "worst_error": round(max(abs(booked / truth - 1) for booked, _, truth in known), 2),
        "booked_usd": round(math.fsum(booked for booked, _, _ in known)),
        "true_usd": round(math.fsum(truth for _, _, truth in known)),
    }


def _holds(booked: float, error: float, truth: float) -> bool:
    return abs(booked - truth) <= NORMAL_QUANTILE * error


def loss(job: Job, workloads: int, lower_end: float | None = None) -> dict[str, Any]:
    """How many alarm in the year after the loss (or without one), and after how many weeks.

    ``lower_end`` is that of the trial's interval, None where it is the true speed-up.
    """
    weeks = []
    since = BEGIN + (BASELINE_WEEKS + min(job.lost_week, 8)) * WEEK
    for number in range(workloads):
        made = simulated(job, f"{job}{number}")
        at = _lost_at(made, lower_end or job.speedup, since)
        weeks += [] if at is None else [(at - since) / WEEK]
    weeks.sort()
    return {
        "workloads": workloads,
        "alarmed": len(weeks),
        "median_weeks": round(statistics.median(weeks), 1) if weeks else None,
        "weeks_of_nine_in_ten": round(weeks[math.ceil(0.9 * len(weeks)) - 1], 1) if weeks else None,
    }


def _lost_at(made: Made, speedup: float, since: float) -> float | None:
    """When the first review says so, from eight weeks after the promotion on and within a year."""
    total: SpeedSum | None = None
    for place, run in enumerate(made.runs):
        if run.started_at < since or run.started_at > since + 52 * WEEK:
            continue
        near = made.runs[max(place - 30, 0) : place + 1]
        total = speed_sum(total, near, CANDIDATE, speedup, now=run.at)
        if total is not None and total.lost_at is not None:
            return total.lost_at
    return None


def measure(workloads: int = WORKLOADS) -> dict[str, Any]:
    """Every figure of holdback.json."""
    grown = [
        {"growth": growth, "runs_per_week": rate, "spread": spread,
         **coverage(Job(rate, spread, growth), workloads)}
        for growth in GROWTHS for rate in SCHEDULES for spread in SPREADS
    ]  # fmt: skip
    odd = [
        {"what": what, "runs_per_week": rate, "spread": spread,
         **coverage(Job(rate, spread, 0.03, **changes), workloads)}
        for what, changes in (
            ("price_steps", {"steps": "price"}), ("data_steps", {"steps": "data"}),
            ("team", {"team": True}), ("small_speedup", {"speedup": 1.1}),
        )
        for rate in SCHEDULES for spread in (0.01, 0.03)
    ]  # fmt: skip
    bursts = [
        {"burst": number, "apart": apart, "bursts_a_week": round(often, 3),
         **in_bursts(Job(number * often, 0.03, burst=number, apart=apart), workloads)}
        for number, apart, often in BURSTS
    ]  # fmt: skip
    lost = [
        {"speedup": round(speedup, 3), "lower_end": round(lower_end, 3), "runs_per_week": rate,
         "spread": spread, "lost": share,
         **loss(Job(rate, spread, 0.03, speedup, lost_week=8 if share else math.inf, lost=share),
                workloads * (1 if share else 5), lower_end)}
        for speedup, lower_end in (*((one, one) for one in SPEEDUPS), (MEASURED, LOWER_END))
        for rate in (1, 3, 24) for spread in (0.01, 0.03) for share in (0.0, 0.5, 1.0)
    ]  # fmt: skip
    return {
        "workloads": workloads, "growth": grown, "odd": odd, "bursts": bursts, "loss": lost
    }  # fmt: skip


if __name__ == "__main__":
    results.keep("holdback", measure)
