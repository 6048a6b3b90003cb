"""What a trial takes: full runs of a proof, jobs at one time within quotas, hours and USD.

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

import bisect
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from compilegate.domain.compilers import compiler_named
from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.facts import Facts
from compilegate.domain.formats import significant
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import Design, design_for, looks
from compilegate.domain.judging.equivalence import least_rho
from compilegate.domain.judging.quality import ENOUGH_HISTORY
from compilegate.domain.judging.speed import SPEED_LOOKS
from compilegate.domain.planning.arms import (
    CANDIDATE,
    ON,
    ArmPlan,
    Cluster,
    SpeedJob,
    node_groups,
    speed_jobs,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE, Candidate, Workload
from compilegate.domain.workload.quality import Metric

SHADOW, HYBRID = "shadow", "hybrid"
# Full runs of a candidate where the spread of the metric from run to run is unknown.
ASSUMED_RUNS = 3


@dataclass(frozen=True)
class Proof:
    """Full runs of one candidate that a proof probably takes, and those that it may take.

    ``rounds`` of one candidate: one to each look, and one before the first look where a single
    run beside a long history may already end it. ``basis`` says what the numbers rest on,
    ``refused`` why no trial should begin. ``mode`` is who makes the runs: the trial itself
    (shadow), production as it trains anyway (canary), or the trial the first ones (hybrid).
    """

    runs: int
    n_max: int
    history: int
    basis: str
    refused: Reason | None = None
    mode: str = SHADOW

    def extra_runs(self, runs: int) -> int:
        """Those of a candidate's ``runs`` that the trial makes itself, as the judge would ask.

        In a hybrid trial they are none of a candidate that has passed the equivalence check.
        """
        if self.mode == SHADOW:
            return runs
        if self.mode != HYBRID:
            return 0
        return min(runs, 1 if self.history >= ENOUGH_HISTORY else 2)

    def rounds(self, runs: int, *, later: bool = False) -> tuple[tuple[int, int], ...]:
        """Extra runs of a candidate and of the baseline, round by round, until it has ``runs``."""
        extra = self.extra_runs(runs)
        if self.mode != SHADOW:
            ends = [extra] if extra else []
        else:
            first = [1] if self.history >= ENOUGH_HISTORY else []
            ends = [*first, *(n for n in looks(self.n_max) if n <= extra)]
        beside = [0, *(self.baseline_runs(end, later=later) for end in ends)]
        steps = zip(itertools.pairwise((0, *ends)), itertools.pairwise(beside), strict=True)
        return tuple((end - start, base - before) for (start, end), (before, base) in steps)

    def production_runs(self, runs: int) -> int:
        """Production runs that make up the rest, the baseline's of the same weeks included."""
        # There the arms take turns, whatever history there is: turns cost nothing.
        return 2 * (runs - self.extra_runs(runs))

    def baseline_runs(self, runs: int, *, later: bool = False) -> int:
        """Baseline runs beside ``runs`` of a candidate: as many.

        To a ``later`` candidate those beside the one before are history, but for the last.
        """
        return max(runs - 1, 0) if later else runs


def possible_rho(workload: Workload, candidates: Sequence[Candidate], facts: Facts) -> float:
    """The least that the equivalence check may leave one of these candidates."""
    framework, training = workload.framework, workload.training
    device, minor = facts.device_of(training.instance_type), framework.version.split(".")[:2]
    job = f"{framework.kind} {'.'.join(minor)}", training.precision
    classes = [
        one
        for one in facts.faults.classes
        if device in (one.device, one.kind_of_device) and (one.framework, one.precision) == job
    ]
    return least_rho([one.overrides() for one in candidates], workload.policy, classes)


def plan_proof(
    workload: Workload, *, candidates: int, mode: str = SHADOW, rho: float = 1.0
) -> Proof | None:
    """The full runs of each of so many candidates; None if too few production runs are left.

    ``mode`` is the one that the trial uses, which may be another than policy asks for. ``rho`` is
    of the candidate that may use most (``possible_rho``). Of several metrics that have to hold, the
    one decides that no run could prove, else the one that takes most.
    """
    first = workload.quality
    design = design_for(
        replace(workload.policy, quality_runs=mode),
        history=len(first.history),
        candidates=candidates,
        runs_remaining=workload.schedule.runs_per_week * WEEKS_PER_YEAR,
        rho=rho,
    )
    if design is None:
        return None
    proofs = [_proof_of(design, one, mode) for one in (first, *first.guardrails)]
    refused = (proof for proof in proofs if proof.refused)
    return next(refused, None) or max(proofs, key=lambda proof: proof.runs)


def _proof_of(design: Design, quality: Metric, mode: str) -> Proof:
    history, count = Samples((), (), quality.history), len(quality.history)
    own, spread = replace(design, history=count), math.sqrt(history.pooled_variance or 0.0)
    if count < ENOUGH_HISTORY or not spread:
        runs = min(ASSUMED_RUNS, design.n_max)
        enough = significant(quality.margin / own.provable_margin(runs), 2)
        basis = (
            f"{count} past runs {'do not differ' if count else 'are on record'}, so the spread of "
            f"{quality.metric} from run to run is unknown: {runs} runs of a candidate are assumed"
            f", enough where it differs by {enough} or less"
        )
        return Proof(runs, design.n_max, design.history, basis, mode=mode)
    needed, refused = own.runs_needed(spread / quality.margin), None
    if why := own.why_underpowered(spread, quality.margin):
        fix = "widen quality.margin to that, or use a metric that varies less"
        refused = Reason("underpowered", f"{quality.metric}: {why}", fix=fix)
    chance = (
        "even the last look proves it with less than 80%"
        if needed is None
        else f"{needed} runs of a candidate prove it with 80% chance if nothing is lost"
    )
    basis = (
        f"{quality.metric} differs by {significant(spread)} from run to run over {count} past runs,"
        f" {significant(spread / quality.margin, 2)} of the margin of {quality.margin:g}: {chance}"
    )
    return Proof(needed or design.n_max, design.n_max, design.history, basis, refused, mode)


# How many jobs of a round run at the same time, and whether the account's quotas hold them.
#
# A quota counts the instances of one type that training jobs use at one time. Where it holds fewer
# than all jobs of a round, the state machine starts as many as it holds and the next one as one
# ends. Whatever else uses the account's quota is waited for (``rounds.QUOTA_WAIT_SECONDS``).

# Instances of a type that training jobs may run at once, None where the quota is unknown.
QuotaLookup = Callable[[str], int | None]
NEVER_READ: QuotaLookup = dict[str, int]().get
# One block stops most slow candidates; then come those up to the judge's next look, at most two.
BLOCKS_PER_ROUND = 2
# Iterations that an inline Map of Step Functions runs at once.
MOST_AT_ONCE = 40
SPEED, QUALITY = "speed", "quality"


@dataclass(frozen=True)
class Need:
    """Instances of one type that one job takes, and the most that a round runs at once."""

    instance_type: str
    one_job: int
    at_once: int
    quota: int | None
    spot: bool

    @property
    def quota_name(self) -> str:
        """The quota as the Service Quotas console lists it."""
        usage = "spot training job usage" if self.spot else "training job usage"
        return f"{self.instance_type} for {usage}"


@dataclass(frozen=True)
class RoundLayout:
    """The round of a stage that takes most turns: its jobs, and how many run at the same time."""

    stage: str
    jobs: int
    at_once: int

    @property
    def waves(self) -> int:
        """How many jobs at most run one after the other."""
        return waves(self.jobs, self.at_once)


def max_concurrency(clusters: Sequence[Cluster], quota: QuotaLookup) -> int:
    """Jobs of a round that may run at once in any combination, at least one.

    An unknown quota counts as the largest single job of its type: it may hold no more.
    """
    limit = min(max(len(clusters), 1), MOST_AT_ONCE)
    for kind in dict.fromkeys(cluster.instance_type for cluster in clusters):
        sizes = [cluster.instances for cluster in clusters if cluster.instance_type == kind]
        room = quota(kind)
        # If the largest jobs of this type come first.
        together = list(itertools.accumulate(sorted(sizes, reverse=True)))
        fitting = bisect.bisect_right(together, max(sizes) if room is None else room)
        if fitting < len(sizes):
            limit = min(limit, max(fitting, 1))
    return limit


def makespan(hours: Sequence[float], at_once: int) -> float:
    """Hours until the last of these jobs has ended, started in their order as places come free."""
    free = [0.0] * max(1, min(at_once, len(hours)))
    for job in hours:
        heapq.heapreplace(free, free[0] + job)
    return max(free)


def waves(jobs: int, at_once: int) -> int:
    """How many jobs at most run one after the other in the same place."""
    return math.ceil(jobs / at_once)


def unlimited(_instance_type: str) -> int | None:
    """A quota that holds every round."""
    return 10**9


def needs(
    arms: Sequence[ArmPlan], proof: Proof, *, spot: bool, quota: QuotaLookup
) -> tuple[Need, ...]:
    """What the plan takes of each instance type, in the order of its arms."""
    one_job: dict[str, int] = {}
    for arm in arms:
        most = max(one_job.get(arm.instance_type, 0), arm.instance_count)
        one_job[arm.instance_type] = most
    at_once: Counter[str] = Counter()
    for clusters in (_speed_round(arms), *_full_rounds(arms, proof, proof.runs)):
        kinds = (one.instance_type for one in clusters for _ in range(one.instances))
        at_once |= Counter(kinds)
    return tuple(
        Need(kind, instances, max(instances, at_once[kind]), quota(kind), spot)
        for kind, instances in one_job.items()
    )


def too_low(required: Sequence[Need]) -> Reason | None:
    """Why a trial would end at its first job: SageMaker would refuse it."""
    for need in required:
        if need.quota is not None and need.one_job > need.quota:
            return Reason(
                "quota_too_low",
                f"a job needs {need.one_job} x {need.instance_type}, and the account's quota is "
                f"{need.quota}",
                fix=f'request {need.at_once} for "{need.quota_name}" under Service Quotas, Amazon '
                "SageMaker, or use fewer instances",
            )
    return None


def layouts(arms: Sequence[ArmPlan], proof: Proof, quota: QuotaLookup) -> tuple[RoundLayout, ...]:
    """How the rounds of speed blocks and of full runs are laid out within the quotas."""
    speed, *full = (
        RoundLayout(stage, len(clusters), max_concurrency(clusters, quota))
        for stage, clusters in (
            (SPEED, _speed_round(arms)),
            *((QUALITY, clusters) for clusters in _full_rounds(arms, proof, proof.n_max)),
        )
    )
    return (speed, *sorted(full, key=lambda one: (one.waves, one.jobs), reverse=True)[:1])


def _speed_round(arms: Sequence[ArmPlan]) -> list[Cluster]:
    """Each group's jobs, and both blocks', where there are several groups."""
    groups = node_groups(arms)
    jobs = BLOCKS_PER_ROUND if len(groups) > 1 else 1
    return [group[0].cluster for group in groups] * jobs


def _full_rounds(arms: Sequence[ArmPlan], proof: Proof, runs: int) -> Iterator[list[Cluster]]:
    """Every round of full runs until a candidate has ``runs``, each candidate with the baseline."""
    for arm in arms:
        if arm.role == CANDIDATE:
            for more, base in proof.rounds(runs):
                yield full_round(arm, arms[0], more, base)


def full_round(candidate: ArmPlan, baseline: ArmPlan, more: int, base: int) -> list[Cluster]:
    """Machines of a round of full runs: ``more`` of a candidate, ``base`` of the baseline."""
    return [candidate.cluster] * more + [baseline.cluster] * base


# What that may cost, and how long it may take, by arm and in all.

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
    hours_side_by_side: float


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
        both = [
            (end.billed[index], runs[index] * run_hours)
            for end, runs in zip(ends, full, strict=True)
        ]
        rate = min(arm.usd_per_hour, arms[0].usd_per_hour)
        usd = ThreePoint(*(arm.usd_per_hour * short + rate * long for short, long in both))
        hours = ThreePoint(*(short + long for short, long in both))
        estimates.append(ArmEstimate(arm.name, usd.capped(cap_usd), hours))

    def quality_hours(runs: int, quota: QuotaLookup = quota) -> float:
        """Of every candidate, one after the other; another's baseline runs are history to it."""
        total, candidates = 0.0, [arm for arm in arms if arm.role == CANDIDATE]
        for index, arm in enumerate(candidates):
            for more, base in proof.rounds(runs, later=index > 0):
                clusters = full_round(arm, arms[0], more, base)
                total += run_hours * waves(len(clusters), max_concurrency(clusters, quota))
        return total + len(candidates) * proof.production_runs(runs) * WEEK_HOURS / runs_per_week

    total = sum((one.usd for one in estimates), ThreePoint(0.0, 0.0, 0.0))
    speed_usd = ends[1].usd(arms)
    side_by_side = speed_course(arms, run_hours)[SPEED_LOOKS[0]].elapsed
    return Estimate(
        usd=total.expected,
        hours=ends[1].elapsed + quality_hours(proof.runs),
        speed_usd=speed_usd,
        quality_usd=total.expected - speed_usd,
        low_usd=total.low,
        high_usd=total.capped(cap_usd).high,
        low_hours=ends[0].elapsed,
        high_hours=ends[2].elapsed + quality_hours(proof.n_max),
        arms=tuple(estimates),
        hours_side_by_side=side_by_side + quality_hours(proof.runs, unlimited),
    )


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
    if not compiler_named(arm.compiler).compiles:
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
    # What is on makes as many beside each candidate.
    counts = {CANDIDATE: extra, BASELINE: beside, ON: extra * (later + 1)}
    return [counts.get(arm.role, 0) for arm in arms]
