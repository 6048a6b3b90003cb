"""The one step that would most cheaply decide an open trial (docs/contracts.md).

Seeds are the smallest unused ones of each arm, so that both arms train on the same seeds as
far as production leaves them a choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from compilegate.domain.decision import CANARY, SHADOW, QualityStep, RequestedFullRun, SpeedStep
from compilegate.domain.judging.concurrent import samples_of
from compilegate.domain.judging.evidence import Arm, Evidence, runs_apart
from compilegate.domain.judging.looks import SPEED_LOOKS, looks, next_look
from compilegate.domain.judging.power import Design
from compilegate.domain.judging.pricing import usd_per_run
from compilegate.domain.judging.quality import first_runs
from compilegate.domain.judging.speed import Segments
from compilegate.domain.judging.value_of_information import (
    concurrent_runs_missing,
    paid_baseline_runs,
)
from compilegate.domain.workload.model import BASELINE

FIRST_SEED = 17


def next_speed(evidence: Evidence, open_arms: Sequence[str]) -> SpeedStep:
    """More blocks, up to the next look; rejected arms are no longer among ``open_arms``.

    The first round is a single block, because that is enough to stop most slow candidates.
    """
    plan, arms = evidence.plan, [BASELINE, *open_arms]
    used = {run.block for arm in evidence.arms for run in arm.speed}
    # A candidate that waited has fewer blocks than the baseline.
    done = max(len(arm.speed) for arm in evidence.arms if arm.name in open_arms)
    looks = [look for look in SPEED_LOOKS if done < look <= plan.max_blocks] or [plan.max_blocks]
    blocks = max(1, min(looks[0] - done, plan.blocks_per_round)) if done else 1
    return SpeedStep(
        block=max(used, default=-1) + 1,
        blocks=blocks,
        steps=plan.speed_steps,
        arms=tuple(arms),
        usd=_block_usd(evidence, arms, blocks),
        why=f"{blocks} short block{'s' * (blocks > 1)}, {_how(evidence, open_arms)}, "
        "to measure the full-run speed-up",
    )


def _how(evidence: Evidence, open_arms: Sequence[str]) -> str:
    candidates = (arm for arm in evidence.candidates if arm.name in open_arms)
    if any(runs_apart(arm, evidence.baseline) for arm in candidates):
        return "arms that need other nodes in separate jobs at the same time"
    return "all arms back to back"


def _block_usd(evidence: Evidence, arms: Sequence[str], blocks: int) -> float | None:
    """What the blocks may cost: the plan's estimate, else the last segments' own time."""
    if evidence.plan.usd_per_block is not None:
        return evidence.plan.usd_per_block * blocks
    total = 0.0
    for arm in evidence.arms:
        if arm.name not in arms:
            continue
        seen = [run.step_seconds for run in arm.speed if run.step_seconds]
        if not seen or arm.usd_per_hour is None:
            return None
        total += math.fsum(seen[-1]) / 3600 * arm.usd_per_hour
    return total * blocks


def next_quality(
    evidence: Evidence,
    candidate: Arm,
    design: Design,
    segments: Segments,
    *,
    lacks_baseline_only: bool,
) -> QualityStep:
    """The next full runs of the candidate under test, and the baseline runs they lack."""
    shadow = is_shadow(evidence, candidate)
    n = len(samples_of(candidate, evidence).candidate)
    if lacks_baseline_only:
        more, base = 0, max(concurrent_runs_missing(candidate, evidence, n), 1)
    else:
        more = _candidate_runs(evidence, n, design, shadow=shadow)
        base = _baseline_runs(evidence, candidate, n + more, shadow=shadow, least=0 if more else 1)
    behind = len(samples_of(candidate, evidence).baseline) < n
    turn = behind or _trained_last(evidence) == BASELINE
    first = shadow or turn or n + more in looks(design.n_max)
    sides = (evidence.baseline, base), (candidate, more)
    turns = _alternating(*(sides if first else sides[::-1]))
    runs = tuple(RequestedFullRun(name, seed) for name, seed in turns)
    mode = SHADOW if shadow else CANARY
    return QualityStep(
        mode=mode,
        runs=runs,
        usd=_runs_usd(evidence, runs, segments) if shadow else 0.0,
        why=_why(candidate, n + more, base, mode),
    )


def is_shadow(evidence: Evidence, candidate: Arm) -> bool:
    """Whether the next run is an extra one; a hybrid trial's first ones are."""
    mode = evidence.policy.quality_runs
    if mode == "hybrid":
        return len(samples_of(candidate, evidence).candidate) < first_runs(evidence)
    return mode == SHADOW


def _candidate_runs(evidence: Evidence, n: int, design: Design, *, shadow: bool) -> int:
    if not shadow:  # one at a time: production should not train a loser longer than needed
        return 1 if n < design.n_max else 0
    if n == 0:
        return min(first_runs(evidence), design.n_max)
    return (next_look(n, design.n_max) or n) - n


def _baseline_runs(
    evidence: Evidence, candidate: Arm, target: int, *, shadow: bool, least: int
) -> int:
    """Baseline runs of the same weeks: as many as the candidate's where production makes them."""
    if shadow:
        return max(paid_baseline_runs(candidate, evidence, target), least)
    missing = concurrent_runs_missing(candidate, evidence, target)
    balanced = target - len(samples_of(candidate, evidence).baseline)
    return min(max(balanced, missing, least), 1)


def _trained_last(evidence: Evidence) -> str | None:
    """The arm of the last full run: it begins the next round, so that a trend favours neither.

    Over two rounds the arms' runs are then equally late (A B, B A). A round that completes a
    look begins with the baseline, whose run the look would otherwise not see.
    """
    runs = [(run.order, arm.name) for arm in evidence.arms for run in arm.quality]
    return max(runs)[1] if runs else None


def _alternating(first: tuple[Arm, int], second: tuple[Arm, int]) -> Iterator[tuple[str, int]]:
    """So many runs of both arms in turn, so that both see the same weeks; ``second`` ends."""
    turns = range(max(first[1], second[1]))
    backwards = [arm for turn in turns for arm, count in (second, first) if turn < count]
    seeds = {arm.name: _unused_seeds(arm) for arm, _ in (first, second)}
    for arm in reversed(backwards):
        yield arm.name, next(seeds[arm.name])


def _unused_seeds(arm: Arm) -> Iterator[int]:
    used = {run.seed for run in arm.quality}
    return (s for s in range(FIRST_SEED, FIRST_SEED + 10**6) if s not in used)


def _runs_usd(
    evidence: Evidence, runs: Sequence[RequestedFullRun], segments: Segments
) -> float | None:
    """What the runs may cost: the plan's upper estimate, else measured or extrapolated hours."""
    if evidence.plan.usd_per_quality_run is not None:
        return evidence.plan.usd_per_quality_run * len(runs)
    prices = {arm.name: usd_per_run(arm, evidence, segments) for arm in evidence.arms}
    usd = [price for run in runs if (price := prices[run.arm]) is not None]
    return math.fsum(usd) if len(usd) == len(runs) else None


def _why(candidate: Arm, total: int, base: int, mode: str) -> str:
    where = "extra runs" if mode == SHADOW else "scheduled production runs"
    against = f", {base} of the baseline" if base else ""
    return f"{where}, for a total of {total} of {candidate.name}{against}, to prove its quality"
