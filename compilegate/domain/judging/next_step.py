"""The one step that would most cheaply decide an open trial (docs/contracts.md).

Seeds are the smallest unused ones of each arm, so that both arms train on the same seeds as
far as production leaves them a choice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compilegate.domain.decision import CANARY, SHADOW, QualityStep, RequestedFullRun, SpeedStep
from compilegate.domain.judging.comparison import baseline_needed, samples_of
from compilegate.domain.judging.design import EVEN, Design, looks, next_look
from compilegate.domain.judging.equivalence import State, equivalence_of
from compilegate.domain.judging.evidence import Arm, Evidence, finished, runs_apart, walls
from compilegate.domain.judging.quality import first_runs
from compilegate.domain.judging.speed import SPEED_LOOKS
from compilegate.domain.judging.whole_job import PAIRS, usd_per_run
from compilegate.domain.optional import without_none
from compilegate.domain.workload.model import BASELINE

# Value of information: whether the next measurement is worth its price.
#
# Everything is counted in baseline runs: a faster candidate saves 1 - 1/S of one, every run
# that production still makes. L runs remain.

# A trial before any measurement: share of candidates that win, and by how much when they do.
CHANCE_OF_A_WIN = 0.4
TYPICAL_WIN = 1.35
# Runs that pass while the trial lasts, and full runs it takes on average.
RUNS_DURING_TRIAL = 2
FULL_RUNS_EXPECTED = 1.5
# Chance that a candidate whose speed is proven also holds its quality.
CHANCE_QUALITY_HOLDS = 0.8


@dataclass(frozen=True)
class InformationValue:
    """What a step is expected to bring and what it costs, in baseline runs; ``runs`` it takes."""

    gain: float
    cost: float
    runs: int = 0

    @property
    def pays(self) -> bool:
        """Whether the step brings at least what it costs."""
        return self.gain >= self.cost


def value_of_a_trial(evidence: Evidence) -> InformationValue | None:
    """Whether to measure at all; None where the runs left or the steps of a run are unknown.

    gain = 0.4 max(0, (L - 2)(1 - 1/1.35) - 1.5/1.35); cost = blocks x arms x steps of a
    segment / steps of a run, of the blocks of the first look.
    """
    steps, remaining = evidence.baseline.full_run_steps, evidence.runs_left()
    if steps is None or remaining is None:
        return None
    saved = (remaining - RUNS_DURING_TRIAL) * (1 - 1 / TYPICAL_WIN)
    gain = CHANCE_OF_A_WIN * max(0.0, saved - FULL_RUNS_EXPECTED / TYPICAL_WIN)
    measured = SPEED_LOOKS[0] * len(evidence.arms) * evidence.plan.speed_steps
    return InformationValue(gain, measured / steps)


def value_of_shadow_runs(
    candidate: Arm, evidence: Evidence, design: Design, speedup: float
) -> InformationValue | None:
    """Whether the dedicated runs k that are still needed pay; None if L is unknown.

    gain = 0.8 (L - k) x share of a run's price that the candidate saves; cost = k (1 - share), and
    the baseline runs that are paid for.
    """
    remaining, samples = evidence.runs_left(), samples_of(candidate, evidence)
    n, variance = len(samples.candidate), samples.pooled_variance
    if remaining is None:
        return None
    needed = 0
    if variance and samples.degrees_of_freedom >= 2:
        relative = math.sqrt(variance) / evidence.quality.margin
        needed = design.runs_needed(relative, EVEN) or design.n_max
    target = max(needed, next_look(n, design.n_max) or n)
    if evidence.policy.quality_runs == "hybrid":  # production makes all but the first
        target = first_runs(evidence)
    saved = 1 - evidence.price_ratio(candidate) / speedup
    runs = max(target - n, 0)
    cost = runs * (1 - saved) + paid_baseline_runs(candidate, evidence, target)
    gain = CHANCE_QUALITY_HOLDS * max(0.0, remaining - runs) * saved
    return InformationValue(gain, cost, runs)


def paid_baseline_runs(candidate: Arm, evidence: Evidence, target: int) -> int:
    """Dedicated baseline runs beside which ``target`` candidate runs prove most for their price.

    Production's own come for nothing beside a shadow trial, one or more a round, so it pays
    only for what they leave to be made. Otherwise it pays for as many as the candidate's.
    """
    samples = samples_of(candidate, evidence)
    missing = concurrent_runs_missing(candidate, evidence, target)
    if evidence.plan.production_beside and (samples.baseline or not samples.candidate):
        return max(missing - 1, 0)
    if target < 2:  # no look yet
        return missing
    return max(target - len(samples.baseline), missing)


def concurrent_runs_missing(candidate: Arm, evidence: Evidence, target: int) -> int:
    """Baseline runs of the same weeks without which ``target`` candidate runs prove nothing."""
    untimed = not walls(evidence.baseline.quality) and not evidence.history_wall_seconds
    needed = baseline_needed(target) if target >= 2 or untimed else 0
    return max(needed - len(samples_of(candidate, evidence).baseline), 0)


FIRST_SEED = 17


def next_speed(evidence: Evidence, open_arms: Sequence[str]) -> SpeedStep:
    """More blocks, up to the next look; rejected arms are no longer among ``open_arms``.

    The first round is a single block, because that is enough to stop most slow candidates.
    """
    plan = evidence.plan
    arms = [arm for arm in evidence.arms if arm.name in open_arms]
    # A candidate that waited has fewer blocks than the baseline.
    done = max(len(arm.speed) for arm in arms)
    coming = [look for look in SPEED_LOOKS if done < look <= plan.max_blocks] or [plan.max_blocks]
    blocks = max(1, min(coming[0] - done, plan.blocks_per_round)) if done else 1
    how = "all arms back to back"
    if any(runs_apart(arm, evidence.baseline) for arm in arms):
        how = "arms that need other nodes in separate jobs at the same time"
    measured = tuple(dict.fromkeys((BASELINE, evidence.on_top_of or BASELINE, *open_arms)))
    return SpeedStep(
        block=max((run.block for arm in evidence.arms for run in arm.speed), default=-1) + 1,
        blocks=blocks,
        steps=plan.speed_steps,
        arms=measured,
        usd=_blocks_usd(evidence, measured, blocks),
        why=f"{blocks} short block{'s' * (blocks > 1)}, {how}, to measure the full-run speed-up",
    )


def _blocks_usd(evidence: Evidence, names: Sequence[str], blocks: int) -> float | None:
    """What the blocks may cost: the plan's estimate, else the last segments' own time."""
    if evidence.plan.usd_per_block is not None:
        return evidence.plan.usd_per_block * blocks
    total = 0.0
    for arm in evidence.arms:
        if arm.name not in names:
            continue
        seen = [run.step_seconds for run in arm.speed if run.step_seconds]
        if not seen or arm.usd_per_hour is None:
            return None
        total += math.fsum(seen[-1]) / 3600 * arm.usd_per_hour
    return total * blocks


def next_quality(
    evidence: Evidence, candidate: Arm, design: Design, *, lacks_baseline_only: bool
) -> QualityStep:
    """The next full runs of the candidate under test, and the baseline runs they lack.

    Whose run was last begins the next round, so that a trend favours neither: over two rounds the
    arms' runs are then equally late (A B, B A). A round that completes a look begins with the
    baseline, whose run the look would otherwise not see.
    """
    shadow, samples = is_shadow(evidence, candidate), samples_of(candidate, evidence)
    n, beside = len(samples.candidate), len(samples.baseline)
    if lacks_baseline_only:
        more = 0
    elif not shadow:  # one at a time: production should not train a loser longer than needed
        more = 1 if n < design.n_max else 0
    elif n == 0:
        more = min(first_runs(evidence), design.n_max)
    else:
        more = (next_look(n, design.n_max) or n) - n
    missing, least = concurrent_runs_missing(candidate, evidence, n + more), 0 if more else 1
    if lacks_baseline_only:
        base = max(missing, 1)
    elif shadow:
        base = max(paid_baseline_runs(candidate, evidence, n + more), least)
    else:  # as many as the candidate's where production makes them, one at a time
        base = min(max(n + more - beside, missing, least), 1)
    jobs = math.ceil(more / PAIRS) if shadow and evidence.plan.pairs else 0
    if jobs:
        more = base = PAIRS * jobs
    trained = [(run.order, arm.name) for arm in evidence.arms for run in arm.quality]
    last = max(trained)[1] if trained else ""
    first = shadow or beside < n or last == BASELINE or n + more in looks(design.n_max)
    on = [arm for arm in evidence.arms if arm.name == evidence.on_top_of]
    behind = [(arm, max(n + more - len(finished(arm.quality)), 0)) for arm in on]
    between = ((arm, lacking if shadow else min(lacking, 1)) for arm, lacking in behind)
    sides = (evidence.baseline, base), *between, (candidate, more)
    runs = _seeded(_alternating(*(sides if first else sides[::-1])))
    where = "extra runs" if shadow else "scheduled production runs"
    if jobs:
        runs, where = _seeded(_in_pairs(evidence.baseline, candidate, jobs)), "extra runs in pairs"
    against = f", {base} of the baseline" if base else ""
    return QualityStep(
        mode=SHADOW if shadow else CANARY,
        runs=runs,
        usd=_runs_usd(evidence, runs) if shadow else 0.0,
        why=f"{where}, for a total of {n + more} of {candidate.name}{against}, to prove its "
        "quality",
    )


def is_shadow(evidence: Evidence, candidate: Arm) -> bool:
    """Whether the next run is an extra one.

    A hybrid trial's first ones are, unless the candidate passed the equivalence check.
    """
    mode = evidence.policy.quality_runs
    if mode != "hybrid":
        return mode == SHADOW
    at_first = equivalence_of(replace(candidate, quality=()), evidence)
    made = len(samples_of(candidate, evidence).candidate)
    return at_first.state is not State.PASSED and made < first_runs(evidence)


def _alternating(*sides: tuple[Arm, int]) -> list[Arm]:
    """So many runs of each arm in turn, so that all see the same weeks; the last one ends."""
    turns = range(max(count for _, count in sides))
    return [arm for turn in turns for arm, count in reversed(sides) if turn < count][::-1]


def _in_pairs(baseline: Arm, candidate: Arm, jobs: int) -> list[Arm]:
    """A B B A of each job, in the next one B A A B: what favours a place favours neither arm."""
    orders = (baseline, candidate, candidate, baseline), (candidate, baseline, baseline, candidate)
    made = len(candidate.quality) // PAIRS
    return [arm for job in range(made, made + jobs) for arm in orders[job % 2]]


def _seeded(arms: Sequence[Arm]) -> tuple[RequestedFullRun, ...]:
    """A run of each, with a seed that its arm has not had."""
    used = {arm.name: {run.seed for run in arm.quality} for arm in arms}
    runs = []
    for arm in arms:
        seed = next(seed for seed in itertools.count(FIRST_SEED) if seed not in used[arm.name])
        used[arm.name].add(seed)
        runs.append(RequestedFullRun(arm.name, seed))
    return tuple(runs)


def _runs_usd(evidence: Evidence, runs: Sequence[RequestedFullRun]) -> float | None:
    """What the runs may cost: the plan's upper estimate, else measured or extrapolated hours."""
    if evidence.plan.usd_per_quality_run is not None:
        return evidence.plan.usd_per_quality_run * len(runs)
    prices = {arm.name: usd_per_run(arm, evidence) for arm in evidence.arms}
    usd = without_none(prices[run.arm] for run in runs)
    return math.fsum(usd) if len(usd) == len(runs) else None
