"""Builds evidence documents with known truth, for the judge's tests."""

from __future__ import annotations

import random
from typing import Any

STEPS = 160
FINGERPRINT = {"gpu": "A10G", "torch": "2.13.0", "code_sha256": "c", "data_sha256": "d"}


def speed_run(
    block: int,
    step_seconds: float,
    *,
    compile_seconds: float = 0.0,
    seed: int = 0,
    noise: float = 0.02,
) -> dict[str, Any]:
    """One segment around a known step time; the compilation happens inside the first step."""
    rng = random.Random(f"{block}-{seed}-{step_seconds}")
    node = 1 + 0.04 * random.Random(block).gauss(0, 1)
    steps = [step_seconds * node * (1 + noise * rng.gauss(0, 1)) for _ in range(STEPS)]
    steps[0] += compile_seconds
    return {
        "stage": "speed",
        "block": block,
        "node": f"n{block}",
        "job": f"s{block}",
        "compile_seconds": compile_seconds,
        "step_seconds": steps,
        "samples_per_step": 32,
        "finished": True,
        "applied": True,
        "fingerprint": dict(FINGERPRINT),
    }


def quality_run(order: int, seed: int, metric: float, wall_seconds: float) -> dict[str, Any]:
    """One full run that finished."""
    return {
        "stage": "quality",
        "mode": "shadow",
        "order": order,
        "seed": seed,
        "metric": metric,
        "wall_seconds": wall_seconds,
        "finished": True,
        "applied": True,
        "initial_loss": 3.0 + seed / 1000,
        "fingerprint": dict(FINGERPRINT),
    }


def document(
    *,
    speedup: float = 1.4,
    blocks: int = 3,
    compile_seconds: float = 3.0,
    metrics: dict[str, list[float]] | None = None,
    margin: float = 0.02,
    full_run_steps: int = 2000,
    goal: str = "minimize",
    policy: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A trial of one candidate, ``compile``, with a true steady speed-up."""
    base = 0.03
    arms: dict[str, list[dict[str, Any]]] = {
        "baseline": [speed_run(b, base, seed=1) for b in range(blocks)],
        "compile": [
            speed_run(b, base / speedup, compile_seconds=compile_seconds, seed=2)
            for b in range(blocks)
        ],
    }
    order = 0
    for name, values in (metrics or {}).items():
        step = base if name == "baseline" else base / speedup
        for replicate, value in enumerate(values):
            wall = 5 + full_run_steps * step
            arms[name].append(quality_run(order, 17 + replicate, value, wall))
            order += 1
    return {
        "schema": 1,
        "workload": "lm",
        "phase": "trial",
        "promoted": None,
        "policy": {"quality_runs": "shadow", **(policy or {})},
        "quality": {"metric": "eval_loss", "goal": goal, "margin": margin},
        "usd_per_hour": 1.408,
        "runs_per_week": 2800,
        "runs_remaining": 145600,
        "full_run_steps": full_run_steps,
        "arms": [
            {"name": name, "overrides": {} if name == "baseline" else {"compiler": "torch_compile"},
             "runs": runs}
            for name, runs in arms.items()
        ],
    }  # fmt: skip


GOOD = {"baseline": [2.500, 2.504, 2.498], "compile": [2.501, 2.503, 2.499]}
WORSE = {"baseline": [2.500, 2.504, 2.498], "compile": [2.551, 2.553, 2.549]}
NOISY = {"baseline": [0.70, 0.82, 0.58], "compile": [0.71, 0.59, 0.83]}
