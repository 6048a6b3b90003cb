"""What a trial may cost and how long it may take, by arm and in all; USD and hours.

Three ends: *low* is one speed block after which every candidate is dropped; *expected* is
three blocks and, for every candidate one after the other, the full runs that a proof takes with
80 % chance; *high* is all six blocks and all full runs that policy allows, within
policy.max_trial_usd, which a running trial never exceeds.

A speed job is billed for its start-up, a segment per arm and block, and first compilations. A
full run is priced at the cheaper of the two clusters' price per run: a candidate gets full
runs only once blocks have proven it faster, by its price per hour as well (speed.py). Prices
are on-demand; managed spot training costs at most that. Runs that production makes anyway cost
the trial nothing and take as long as the schedule does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from compilegate.domain.compilers import compiler_named
from compilegate.domain.judging.statistics import SPEED_LOOKS
from compilegate.domain.planning.arms import CANDIDATE, ArmPlan, SpeedJob, speed_jobs
from compilegate.domain.planning.proof import Proof
from compilegate.domain.planning.quotas import (
    QuotaLookup,
    full_round,
    makespan,
    max_concurrency,
    unlimited,
    waves,
)
from compilegate.domain.workload.model import BASELINE

# Assumed: so long a job is billed before its first step, for image, data and processes.
STARTUP_HOURS = 0.05
# Assumed: a segment takes so long, or the run if that is shorter.
SEGMENT_HOURS = 0.1
WEEK_HOURS = 168.0
# Of a compiler without profiled or assumed seconds.
COMPILE_SECONDS = 360.0
ROUND_ENDS = (1, *SPEED_LOOKS)


@dataclass(frozen=True)
class ThreePoint:
    """Low, expected and high."""

    low: float
    expected: float
    high: float

    def __add__(self, other: ThreePoint) -> ThreePoint:
        """End by end."""
        return ThreePoint(
            self.low + other.low, self.expected + other.expected, self.high + other.high
        )

    def capped(self, most: float) -> ThreePoint:
        """No higher than ``most``, below which the expected end lies or no trial begins."""
        return ThreePoint(self.low, self.expected, max(self.expected, min(self.high, most)))


@dataclass(frozen=True)
class ArmEstimate:
    """What one arm may cost and for how many hours its cluster is billed."""

    name: str
    usd: ThreePoint
    hours: ThreePoint


@dataclass(frozen=True)
class Estimate:
    """What a trial probably costs: ``usd`` of all jobs, ``hours`` of its rounds in turn.

    ``hours`` are those of rounds that are laid out within the account's quotas,
    ``hours_side_by_side`` where every round ran all of its jobs at once.
    """

    usd: float
    hours: float
    speed_usd: float
    quality_usd: float
    low_usd: float
    high_usd: float
    low_hours: float
    high_hours: float
    arms: tuple[ArmEstimate, ...]
    hours_side_by_side: float = 0.0


@dataclass(frozen=True)
class SpeedCourse:
    """The speed gate after some block: billed hours by arm, and hours of its rounds in turn."""

    billed: tuple[float, ...]
    elapsed: float

    def usd(self, arms: Sequence[ArmPlan]) -> float:
        """Price of the gate so far."""
        prices = zip(arms, self.billed, strict=True)
        return math.fsum(arm.usd_per_hour * hours for arm, hours in prices)


def estimate(
    arms: Sequence[ArmPlan],
    *,
    run_hours: float,
    proof: Proof,
    cap_usd: float,
    runs_per_week: float,
    quota: QuotaLookup = unlimited,
) -> Estimate:
    """Estimate of a trial of these arms, the baseline first, its rounds within ``quota``."""
    course = speed_course(arms, run_hours, quota)
    ends = [course[blocks] for blocks in (ROUND_ENDS[0], SPEED_LOOKS[0], SPEED_LOOKS[-1])]
    full = [_full_runs(arms, runs, proof) for runs in (0, proof.runs, proof.n_max)]
    estimates = []
    for index, arm in enumerate(arms):
        blocks = [end.billed[index] for end in ends]
        runs = [counts[index] * run_hours for counts in full]
        rate = min(arm.usd_per_hour, arms[0].usd_per_hour)
        both = list(zip(blocks, runs, strict=True))
        usd = ThreePoint(*(arm.usd_per_hour * short + rate * long for short, long in both))
        hours = ThreePoint(*(short + long for short, long in both))
        estimates.append(ArmEstimate(arm.name, usd.capped(cap_usd), hours))
    total = sum((one.usd for one in estimates), ThreePoint(0.0, 0.0, 0.0))
    speed_usd = ends[1].usd(arms)
    quality = partial(
        _quality_hours, arms, proof=proof, run_hours=run_hours, runs_per_week=runs_per_week
    )
    side_by_side = speed_course(arms, run_hours)[SPEED_LOOKS[0]].elapsed
    return Estimate(
        usd=total.expected,
        hours=ends[1].elapsed + quality(proof.runs, quota=quota),
        speed_usd=speed_usd,
        quality_usd=total.expected - speed_usd,
        low_usd=total.low,
        high_usd=total.capped(cap_usd).high,
        low_hours=ends[0].elapsed,
        high_hours=ends[2].elapsed + quality(proof.n_max, quota=quota),
        arms=tuple(estimates),
        hours_side_by_side=side_by_side + quality(proof.runs, quota=unlimited),
    )


def _quality_hours(
    arms: Sequence[ArmPlan],
    runs: int,
    proof: Proof,
    *,
    run_hours: float,
    runs_per_week: float,
    quota: QuotaLookup,
) -> float:
    """Hours of the full runs of every candidate, one candidate after the other.

    Each has baseline runs of its own weeks: those of another's are history to it.
    """
    total = 0.0
    candidates = [arm for arm in arms if arm.role == CANDIDATE]
    for index, arm in enumerate(candidates):
        for more, base in proof.rounds(runs, later=index > 0):
            clusters = full_round(arm, arms[0], more, base)
            total += run_hours * waves(len(clusters), max_concurrency(clusters, quota))
    return total + len(candidates) * proof.production_runs(runs) * WEEK_HOURS / runs_per_week


def speed_course(
    arms: Sequence[ArmPlan], run_hours: float, quota: QuotaLookup = unlimited
) -> dict[int, SpeedCourse]:
    """The speed gate after each of ``ROUND_ENDS``; as many jobs at once as ``quota`` holds."""
    hours = dict.fromkeys((arm.name for arm in arms), 0.0)
    compiled: set[str] = set()
    controls: dict[str, int] = {}
    elapsed, course = 0.0, {}
    for start, end in itertools.pairwise((0, *ROUND_ENDS)):
        jobs = speed_jobs(
            arms,
            [arm.name for arm in arms],
            first_block=start,
            blocks=end - start,
            control_blocks=controls,
        )
        lengths = [_bill(job, hours, compiled, run_hours) for job in jobs]
        clusters = [job.arms[0].cluster for job in jobs]
        elapsed += makespan(lengths, max_concurrency(clusters, quota))
        controls = dict.fromkeys(hours, end)
        course[end] = SpeedCourse(tuple(hours[arm.name] for arm in arms), elapsed)
    return course


def job_hours(job: SpeedJob, run_hours: float) -> float:
    """Hours that one speed job is billed for, first compilations included."""
    return _bill(job, dict.fromkeys((arm.name for arm in job.arms), 0.0), set(), run_hours)


def block_usd(arms: Sequence[ArmPlan], run_hours: float) -> float:
    """Mean price of one block of all arms, start-up and first compilations included."""
    return speed_course(arms, run_hours)[SPEED_LOOKS[-1]].usd(arms) / SPEED_LOOKS[-1]


def _bill(job: SpeedJob, hours: dict[str, float], compiled: set[str], run_hours: float) -> float:
    """Add one job to its arms' hours, start-up shared evenly; returns the job's length."""
    total = STARTUP_HOURS
    for arm in job.arms:
        own = min(run_hours, SEGMENT_HOURS) * job.blocks
        seconds = COMPILE_SECONDS if arm.compile_seconds is None else arm.compile_seconds
        own += seconds / 3600 * _compilations(arm, job.blocks, compiled)
        hours[arm.name] += own + STARTUP_HOURS / len(job.arms)
        total += own
    return total


def _compilations(arm: ArmPlan, blocks: int, compiled: set[str]) -> int:
    """The managed compiler keeps no cache between jobs; any other compiles cold once."""
    if arm.compiler == "none":
        return 0
    if not compiler_named(arm.compiler).keeps_cache:
        return blocks
    first = arm.name not in compiled
    compiled.add(arm.name)
    return int(first)


def _full_runs(arms: Sequence[ArmPlan], runs: int, proof: Proof) -> list[int]:
    """Extra full runs of each arm when every candidate takes ``runs``; controls take none."""
    extra, later = proof.extra_runs(runs), sum(arm.role == CANDIDATE for arm in arms) - 1
    beside = proof.baseline_runs(extra) + later * proof.baseline_runs(extra, later=True)
    counts = {CANDIDATE: extra, BASELINE: beside if extra else 0}
    return [counts.get(arm.role, 0) for arm in arms]
