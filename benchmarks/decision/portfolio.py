"""Portfolios of simulated workloads: a plausible fleet, and worst cases at the very edges.

Every figure is a judgement about a plausible training fleet, not a measurement of one: bounds
on wrong decisions carry over to wherever the assumptions hold, costs and savings move with the
fleet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.decision.noise import nights, noise, rounded, with_night
from benchmarks.decision.truth import (
    BASELINE,
    STRESSES,
    Arm,
    Steps,
    Stress,
    Workload,
    unit_mean_factor,
)

MARGIN = 0.5  # percentage points
LEVEL = (60.0, 90.0)  # where the metric stands, per cent
# Just below what may be promoted: the hardest arm to keep out on speed.
EDGE = 1.0999
FAST = (1.3, 1.6)
LOSS = "loss "


@dataclass(frozen=True)
class Target:
    """What an arm shall be: either a steady ratio or a whole-job speed-up, and a loss."""

    loss: float
    steady: float | None = None
    speedup: float | None = None
    regression: float = 0.0


Recipe = Callable[[np.random.Generator, int], list[Target]]


def draw(
    rng: np.random.Generator,
    portfolio: str,
    *,
    stress: str = "none",
    candidates: int = 2,
    spread: float | None = None,
    only_compiler: bool = False,
) -> Workload:
    """One workload of the named portfolio; ``spread`` of its metric in margins, else drawn.

    Every second candidate changes the batch as well, unless ``only_compiler`` says otherwise.
    """
    broken = STRESSES[stress]
    steps, baseline = _steps(rng), Arm(BASELINE)
    whole = steps.count * steps.mean_seconds(baseline)
    arms = []
    for i, target in enumerate(recipe(portfolio)(rng, candidates)):
        larger = i % 2 == 1 and not only_compiler
        drafted = _drafted(rng, f"compile-{i + 1}", target, broken, larger=larger)
        arms.append(_fitted(drafted, target, steps, whole))
    drawn = _log_uniform(rng, 0.2, 2.0)
    sd = MARGIN * (drawn if spread is None else spread)
    level = float(rng.uniform(*LEVEL))
    history = _history(rng, level, sd, broken)
    return Workload(
        name="simulated",
        margin=MARGIN,
        spread=sd,
        level=level,
        history=history,
        history_pace=tuple(unit_mean_factor(rng, broken.node_sd) for _ in history),
        steps=steps,
        devices=int(rng.choice([1, 4, 8])),
        runs_per_week=int(rng.choice([1, 3, 7])),
        weeks_left=int(rng.choice([8, 26, 52])),
        arms=(baseline, *arms),
        stress=broken,
    )


def _history(
    rng: np.random.Generator, level: float, spread: float, stress: Stress
) -> tuple[float, ...]:
    """Metrics of the runs before the trial, oldest first."""
    size = int(rng.choice([0, 3, 5, 10, 20]))
    values = noise(rng, size, stress)
    if stress.nights and size:
        values = with_night(values, nights(rng, size, stress), stress)
    return tuple(rounded(float(x), stress.examples) for x in level + spread * values)


def _steps(rng: np.random.Generator) -> Steps:
    hours = float(np.clip(rng.lognormal(math.log(10), 1.2), 1, 200))
    seconds = _log_uniform(rng, 0.1, 1.0)
    return Steps(
        seconds=seconds,
        count=round(hours * 3600 / seconds),
        correlation=float(rng.uniform(0.5, 0.95)),
        variation=float(rng.uniform(0.01, 0.06)),
        straggler_share=float(rng.uniform(0.001, 0.01)),
        straggler_ratio=float(rng.uniform(2, 5)),
        stall_share=float(rng.choice([0.0, rng.uniform(0.0, 0.01)])),
        stall_ratio=float(rng.uniform(2, 8)),
    )


def _drafted(
    rng: np.random.Generator, name: str, target: Target, stress: Stress, *, larger: bool
) -> Arm:
    """An arm of the target's loss, its speed still open; ``larger``: it changes the batch too."""
    compile_seconds = _log_uniform(rng, 20, 900)
    late = 1 + int(rng.poisson(3)) if rng.random() < 0.4 else 0
    return Arm(
        name=name,
        steps_ratio=2 / 3 if larger else 1.0,
        compile_seconds=compile_seconds,
        early_recompiles=int(rng.poisson(1)),
        late_recompiles=late,
        recompile_seconds=compile_seconds * float(rng.uniform(0.1, 0.4)),
        loss=target.loss,
        spread_ratio=stress.candidate_spread,
        correlation=0.0 if larger else float(rng.uniform(0, 0.5)),
        regression=target.regression,
        regresses_at=int(rng.integers(0, 12)) if target.regression else None,
        only_compiler=not larger,
    )


def _fitted(arm: Arm, target: Target, steps: Steps, whole: float) -> Arm:
    """The arm with the target's speed; a whole job of the baseline takes ``whole`` seconds."""
    if target.steady is not None:
        return replace(arm, steady_ratio=target.steady)
    return _solved(arm, steps, whole / (target.speedup or 1.0))


def _solved(arm: Arm, steps: Steps, seconds: float) -> Arm:
    """The arm with the steady ratio at which a full job takes ``seconds``."""
    scale = min(1.0, 0.25 * seconds / max(arm.overhead_seconds, 1e-9))
    arm = replace(
        arm,
        compile_seconds=arm.compile_seconds * scale,
        recompile_seconds=arm.recompile_seconds * scale,
    )
    count = max(1, round(steps.count * arm.steps_ratio))
    step = (seconds - arm.overhead_seconds) / count * arm.steps_ratio / steps.seconds
    compute = 1 + steps.straggler_share * (steps.straggler_ratio - 1)
    return replace(arm, steady_ratio=compute / (step - steps.stall_share * steps.stall_ratio))


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _mixed(rng: np.random.Generator, candidates: int) -> list[Target]:
    """Wins, marginal cases and losses; a change of batch costs quality more often."""
    low, high = [FAST, (1.05, 1.25), (0.7, 1.05)][int(rng.choice(3, p=[0.4, 0.3, 0.3]))]
    first = float(rng.uniform(low, high))
    targets = []
    for i in range(candidates):
        steady = first if i == 0 else first * float(rng.uniform(0.97, 1.20))
        lossy, broken = (0.20, 0.03) if i == 0 else (0.45, 0.05)
        kind = rng.random()
        ratio = rng.uniform(4, 20) if kind < broken else rng.uniform(0, 2)
        loss = MARGIN * float(ratio) if kind < broken + lossy else 0.0
        regression = MARGIN * float(rng.uniform(1, 2)) if rng.random() < 0.05 else 0.0
        targets.append(Target(loss, steady=steady, regression=regression))
    return targets


def _fast(rng: np.random.Generator) -> float:
    return float(rng.uniform(*FAST))


RECIPES: dict[str, Recipe] = {
    "mixed": _mixed,
    "boundary_quality": lambda rng, k: [Target(MARGIN, speedup=_fast(rng)) for _ in range(k)],
    "boundary_speed": lambda _, k: [Target(0.0, speedup=EDGE) for _ in range(k)],
    "all_good": lambda rng, k: [Target(0.0, speedup=_fast(rng)) for _ in range(k)],
}


def recipe(portfolio: str) -> Recipe:
    """The recipe of that name; ``loss 0.5`` is fast arms that all lose half a margin."""
    if portfolio.startswith(LOSS):
        loss = MARGIN * float(portfolio.removeprefix(LOSS))
        return lambda rng, k: [Target(loss, speedup=_fast(rng)) for _ in range(k)]
    return RECIPES[portfolio]
