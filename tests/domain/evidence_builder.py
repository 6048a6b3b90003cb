"""Builds evidence documents with known truth, for the judge's tests."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist, stdev
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge as judge_evidence

STEPS = 160
FINGERPRINT = {"gpu": "A10G", "torch": "2.13.0", "code_sha256": "c", "data_sha256": "d"}


def judge(document: object) -> Decision:
    """The decision on an evidence document."""
    return judge_evidence(read_evidence(document))


def among(evidence: Evidence, candidates: int) -> Evidence:
    """The evidence with so many candidates in all, of which the first is judged."""
    others = (replace(evidence.candidates[0], name=f"other{n}") for n in range(1, candidates))
    return replace(evidence, arms=(*evidence.arms, *others))


def step_of(decision: Decision) -> dict[str, Any] | None:
    """What the judge requests next, as the decision document has it."""
    return write(decision.next)


def next_step(document: dict[str, Any]) -> dict[str, Any]:
    """What the judge requests next of a trial that goes on."""
    decision = judge(document)
    assert Verdict.CONTINUE == decision.verdict
    return step_of(decision) or {}


@lru_cache(maxsize=1000)
def _steps(block: int, step_seconds: float, seed: int, noise: float) -> tuple[float, ...]:
    rng = random.Random(f"{block}-{seed}-{step_seconds}")
    node = 1 + 0.04 * random.Random(block).gauss(0, 1)
    return tuple(step_seconds * node * (1 + noise * rng.gauss(0, 1)) for _ in range(STEPS))


def speed_run(
    block: int,
    step_seconds: float,
    *,
    compile_seconds: float = 0.0,
    seed: int = 0,
    noise: float = 0.02,
) -> dict[str, Any]:
    """One segment around a known step time; the compilation happens inside the first step."""
    steps = list(_steps(block, step_seconds, seed, noise))
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
    # The arms take turns, the baseline first.
    full = [
        (replicate, name != "baseline", name, value)
        for name, values in (metrics or {}).items()
        for replicate, value in enumerate(values)
    ]
    for order, (replicate, changed, name, value) in enumerate(sorted(full)):
        wall = 5 + full_run_steps * (base / speedup if changed else base)
        arms[name].append(quality_run(order, 17 + replicate, value, wall))
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


def arm(doc: dict[str, Any], name: str = "compile") -> dict[str, Any]:
    """The arm of that name."""
    return next(item for item in doc["arms"] if item["name"] == name)


def runs(doc: dict[str, Any], name: str = "compile", stage: str = "quality") -> list[Any]:
    """The runs of one arm in one stage."""
    return [run for run in arm(doc, name)["runs"] if run["stage"] == stage]


def full_runs(doc: dict[str, Any]) -> list[Any]:
    """The full runs of all arms, the baseline's first."""
    return [run for item in doc["arms"] for run in runs(doc, item["name"])]


def codes(decision: Decision) -> set[str]:
    """Codes of all its reasons."""
    return {reason.code for reason in decision.reasons}


def words(decision: Decision) -> str:
    """All that it says to a person."""
    return "\n".join(reason.message for reason in decision.reasons)


def requested(decision: Decision) -> list[tuple[str, int]]:
    """Arm and seed of the full runs that it requests."""
    return [(run["arm"], run["seed"]) for run in (step_of(decision) or {})["runs"]]


def sample(count: int, centre: float, sd: float) -> list[float]:
    """Values of exactly this mean and spread, shaped like a normal sample, in no telling order."""
    scores = [NormalDist().inv_cdf((i + 0.5) / count) for i in range(count)]
    scale = sd / stdev(scores) if count > 1 else 0.0
    values = [centre + scale * score for score in scores]
    random.Random(count).shuffle(values)
    return values


def add_candidate(
    doc: dict[str, Any], name: str, *, speedup: float, metrics: Sequence[float] = (), **keys: Any
) -> None:
    """Another candidate with as many blocks as the first; ``keys`` are the arm's own."""
    count = len(runs(doc, "baseline", "speed"))
    other = document(speedup=speedup, blocks=count, metrics={"compile": list(metrics)})
    order = 1 + max((run["order"] for item in doc["arms"] for run in item["runs"]
                     if run["stage"] != "speed"), default=-1)  # fmt: skip
    added = {**arm(other), "name": name, **keys}
    for position, run in enumerate(run for run in added["runs"] if run["stage"] == "quality"):
        run["order"] = order + position
    doc["arms"].append(added)


# A promoted candidate whose truth is 1.4x and no loss; one margin is five of these spreads.
PROBATION_MARGIN, PROBATION_SD = 0.02, 0.004
BASE_WALL, MINE_WALL, CENTRE = 1000.0, 1000.0 / 1.4, 0.9


def probation_document(
    *,
    history: int = 20,
    sd: float = PROBATION_SD,
    policy: dict[str, Any] | None = None,
    wall_sd: float = 0.01,
) -> dict[str, Any]:
    """A trial that ended with a promotion, in probation, with no production run yet."""
    doc = document(
        metrics={"baseline": sample(3, CENTRE, sd), "compile": sample(3, CENTRE, sd)},
        margin=PROBATION_MARGIN,
        goal="maximize",
        policy=policy,
    )
    for name, wall in (("baseline", BASE_WALL), ("compile", MINE_WALL)):
        for run, log in zip(runs(doc, name), sample(3, 0.0, wall_sd), strict=True):
            run["wall_seconds"] = wall * math.exp(log)
    doc["quality"]["history"] = sample(history, CENTRE, sd)
    doc["quality"]["history_wall_seconds"] = [
        BASE_WALL * math.exp(log) for log in sample(history, 0.0, wall_sd)
    ]
    return {**doc, "phase": "probation", "promoted": "compile"}


def watch(
    doc: dict[str, Any],
    name: str = "compile",
    *,
    metric: float | None = CENTRE,
    wall_seconds: float | None = None,
    confirm: bool = False,
    **keys: Any,
) -> dict[str, Any]:
    """Append one production run of the probation; ``metric`` None is a crash."""
    order = 1 + max(run.get("order", -1) for item in doc["arms"] for run in item["runs"])
    run = {
        "stage": "probation",
        "order": order,
        "confirm": confirm,
        "metric": metric,
        "wall_seconds": wall_seconds or (BASE_WALL if name == "baseline" else MINE_WALL),
        "finished": metric is not None,
        "applied": True,
        **keys,
    }
    arm(doc, name)["runs"].append(run)
    return doc
