"""Trials made from a seed by following the judge: each round is the step that it requests."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.domain.evidence_builder import judge, step_of

FINGERPRINT = {
    "gpu": "none", "driver": None, "torch": "2.13.0", "image": "local/cpu", "precision": "fp32",
    "code_sha256": "8f1c" * 16, "data_sha256": "02ab" * 16, "world_size": 1, "global_batch": 16,
}  # fmt: skip
FIRST_SEED = 17
# Fixed places around the mean, in standard deviations: a lucky draw must not decide a trial.
PLACES = (0.9, -1.1, 0.2, -0.6, 1.2, -0.8, 0.5, -0.3)
STEPS, FULL_STEPS = 160, 1200
USD_PER_HOUR = 1.408
CHANGES = {
    "compile": {"compiler": "torch_compile"},
    "compile-b48": {"compiler": "torch_compile", "batch_size": 48},
    "g5-2x": {"instance_type": "ml.g5.2xlarge"},
}


@dataclass(frozen=True)
class World:
    """What is true of the arms: seconds per step, spread and loss of the metric, compiler."""

    chance: random.Random
    seconds: Mapping[str, float]
    spread: float
    lost: Mapping[str, float]
    recompiles: int
    applied: bool


def run_trial(
    workload: str,
    arms: dict[str, float],
    *,
    spread: float,
    margin: float,
    metric: str = "eval_loss",
    goal: str = "minimize",
    past: int = 0,
    lost: Mapping[str, float] | None = None,
    recompiles: int = 0,
    applied: bool = True,
    prices: Mapping[str, float] | None = None,
    rounds: int = 30,
) -> dict[str, Any]:
    """Makes each requested step, until there is none or ``rounds`` are over.

    ``prices`` are of an hour, over the baseline's; an arm that has one runs on its own nodes.
    """
    world = World(random.Random(workload), arms, spread, lost or {}, recompiles, applied)
    history = [metric_at(goal, spread, n, 0.15) for n in range(past)]
    document: dict[str, Any] = {
        "schema": 1, "workload": workload, "phase": "trial", "promoted": None,
        "policy": {"min_mean_speedup": 1.2, "min_proven_speedup": 1.1, "alpha": 0.05,
                   "quality_runs": "shadow", "max_quality_runs": 36, "probation_runs": 12,
                   "max_trial_usd": 20.0},
        "quality": {"metric": metric, "goal": goal, "margin": margin, "history": history},
        "runs_per_week": 14, "runs_remaining": 728,
        "plan": {"speed_steps": STEPS, "blocks_per_round": 2, "max_blocks": 6,
                 "usd_per_block": 0.02, "usd_per_quality_run": 0.05, "spent_usd": 0.0,
                 "asked_quality_runs": "shadow", "production_beside": False},
        "arms": [
            {"name": name, "usd_per_hour": USD_PER_HOUR * (prices or {}).get(name, 1), "devices": 1,
             "full_run_steps": FULL_STEPS // 3 if name == "compile-b48" else FULL_STEPS,
             "overrides": CHANGES.get(name, {}), "runs": []}
            for name in arms
        ],
    }  # fmt: skip
    _follow(document, world, rounds)
    return document


def _follow(document: dict[str, Any], world: World, rounds: int) -> None:
    for _ in range(rounds):
        step = step_of(judge(document))
        if step is None:
            break
        if step["stage"] == "speed":
            _speed_round(document, step, world)
        else:
            _quality_round(document, step, world)
        document["plan"]["spent_usd"] = round(document["plan"]["spent_usd"] + step["usd"], 4)


def _arm(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(arm for arm in document["arms"] if arm["name"] == name)  # type: ignore[no-any-return]


def _speed_round(document: dict[str, Any], step: Mapping[str, Any], world: World) -> None:
    for block in range(step["block"], step["block"] + step["blocks"]):
        node = world.chance.gauss(1, 0.04)
        for name in step["arms"]:
            segment = _segment(world, name, block, world.seconds[name] * node)
            _arm(document, name)["runs"].append(segment)


def _quality_round(document: dict[str, Any], step: Mapping[str, Any], world: World) -> None:
    goal = document["quality"]["goal"]
    for run in step["runs"]:
        name, seed = run["arm"], run["seed"]
        order = _next_order(document)
        offset = 0.15 if name == "baseline" else 0.0
        metric = metric_at(goal, world.spread, seed - FIRST_SEED, offset)
        metric += world.lost.get(name, 0.0) * (1 if goal == "minimize" else -1)
        arm = _arm(document, name)
        wall = world.seconds[name] * arm["full_run_steps"]
        made = _full_run(world.chance, name, order, seed, training=wall, metric=metric)
        arm["runs"].append(made)


def metric_at(goal: str, spread: float, number: int, offset: float) -> float:
    # Later turns of the same places differ a little, so that no result is a copy of another.
    place = PLACES[number % len(PLACES)] * (1 - 0.03 * (number // len(PLACES)))
    return (0.71 if goal == "maximize" else 1.62) + spread * (place + offset)


def run_probation(evidence: Mapping[str, Any], promoted: str, *, lost: float) -> dict[str, Any]:
    """Production goes on with the promoted candidate, and runs what the judge asks for."""
    document = copy.deepcopy(dict(evidence)) | {"phase": "probation", "promoted": promoted}
    chance, number = random.Random(document["workload"]), 30
    while (step := step_of(judge(document))) is not None:
        for run in step["runs"]:
            name, number = run["arm"], number + 1
            metric = metric_at("minimize", 0.006, number, 0.0)
            metric += 0.0 if name == "baseline" else lost
            step_seconds = (0.060 if name == "baseline" else 0.042) * chance.gauss(1, 0.01)
            made = _full_run(
                chance, name, _next_order(document), number, metric=metric,
                training=FULL_STEPS * step_seconds,
            )  # fmt: skip
            made |= {"stage": "probation", "mode": "production", "confirm": run["confirm"]}
            _arm(document, name)["runs"].append(made)
    return document


def _next_order(document: Mapping[str, Any]) -> int:
    return sum(run["stage"] != "speed" for arm in document["arms"] for run in arm["runs"])


def _compiler(arm: str, recompiles: int, applied: bool) -> dict[str, Any]:
    compiled = "compiler" in CHANGES.get(arm, {})
    return {
        "requested": "torch_compile" if compiled else "none", "applied": applied or not compiled,
        "proof": "3 graphs", "compile_seconds": 2.4 if compiled else 0.0,
        "graphs": 3 if compiled else 0, "recompiles": recompiles if compiled else 0,
        "graph_breaks": 0,
    }  # fmt: skip


def _segment(world: World, arm: str, block: int, step: float) -> dict[str, Any]:
    compiled = "compiler" in CHANGES.get(arm, {})
    apart = "instance_type" in CHANGES.get(arm, {})
    job = f"cg-s{block}b{block}-r0" if apart else f"cg-s{block // 3}-r0"
    recompiles, applied, random_numbers = world.recompiles, world.applied, world.chance
    seconds = [step * random_numbers.lognormvariate(0, 0.03) for _ in range(STEPS)]
    for index in range(8):
        seconds[index] *= 1 + 0.6 * math.exp(-index / 3)
    if compiled:
        seconds[0] += 2.1
        seconds[1] += 0.3
        for place in random_numbers.sample(range(30, STEPS), recompiles):
            seconds[place] += 0.9
    return {
        "stage": "speed", "block": block, "node": job, "job": job,
        "finished": True, "applied": applied or not compiled, "step_seconds": seconds,
        "samples_per_step": 48 if arm == "compile-b48" else 16,
        "compile_seconds": 2.4 if compiled else 0.0,
        "cold_compile_seconds": 38.5 if compiled else None,
        "compiler": _compiler(arm, recompiles, applied), "peak_memory_gib": 0.61,
        "fingerprint": {**FINGERPRINT, "global_batch": 48 if arm == "compile-b48" else 16},
        "initial_loss": 2.77, "reason": None, "full_run_steps": FULL_STEPS,
    }  # fmt: skip


def _full_run(
    random_numbers: random.Random, arm: str, order: int, seed: int, *, training: float,
    metric: float,
) -> dict[str, Any]:  # fmt: skip
    overhead = 12.0 + (2.4 if "compiler" in CHANGES.get(arm, {}) else 0.0)
    curve = [
        [s, 1.45 + 1.4 * math.exp(-s / 260) + random_numbers.gauss(0, 0.06),
         round(s / FULL_STEPS * training, 4)]
        for s in range(1, FULL_STEPS + 1, 6)
    ]  # fmt: skip
    return {
        "stage": "quality", "mode": "shadow", "order": order,
        "seed": seed, "metric": metric, "wall_seconds": overhead + training,
        "finished": True, "applied": True, "job": f"cg-q{order}-{arm}-r0", "reason": None,
        "compiler": _compiler(arm, 0, applied=True), "fingerprint": FINGERPRINT,
        "initial_loss": 2.77 + seed / 1000, "peak_memory_gib": 0.74, "loss_curve": curve,
    }  # fmt: skip


def add_control(document: dict[str, Any], name: str, seconds: float) -> None:
    """Three blocks of a control that takes ``seconds`` a step."""
    world = World(random.Random(name), {}, 0.0, {}, 0, True)
    runs = [_segment(world, name, block, seconds) for block in range(3)]
    document["controls"] = [
        {"name": name, "usd_per_hour": USD_PER_HOUR, "devices": 1, "overrides": {},
         "full_run_steps": FULL_STEPS, "runs": runs}
    ]  # fmt: skip
