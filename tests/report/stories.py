"""Trials as they really look: evidence made from a seed, decided by the real judge."""

from __future__ import annotations

import math
import random
from typing import Any

from compilegate.domain.judge import judge
from compilegate.report import ReportInput

FLAG = "/compilegate/local/workloads/{}/compiler"
SIMULATED = (
    "Ran on this laptop's CPU (2 cores), standing in for ml.g5.xlarge: speed-up is this "
    "machine's; dollars are what the same minutes would cost on ml.g5.xlarge."
)
FINGERPRINT = {
    "gpu": "none", "driver": None, "torch": "2.13.0", "image": "local/cpu", "precision": "fp32",
    "code_sha256": "8f1c" * 16, "data_sha256": "02ab" * 16, "world_size": 1, "global_batch": 16,
}  # fmt: skip
SEEDS = (17, 18, 19)
STEPS, FULL_STEPS = 160, 1200
USD_PER_HOUR = 1.408


def promote() -> ReportInput:
    """A candidate that wins, and a second one that does not."""
    arms = {"baseline": 0.060, "compile": 0.042, "compile-b48": 0.168}
    return _trial("albert-docs", arms, metric="eval_loss", spread=0.004, margin=0.05, blocks=6)


def stay_off() -> ReportInput:
    """Dynamic shapes: hardly any gain, settled by short blocks alone."""
    arms = {"baseline": 0.050, "compile": 0.0492}
    return _trial("gpt-ragged", arms, metric="eval_loss", spread=0.004, margin=0.05, recompiles=8)


def inconclusive() -> ReportInput:
    """Fast, but the metric varies far more than the margin."""
    arms = {"baseline": 0.060, "compile": 0.042}
    return _trial(
        "bert-docs", arms, metric="eval_accuracy", goal="maximize", spread=0.04, margin=0.005
    )


def invalid() -> ReportInput:
    """The compiler was asked for and not applied."""
    return _trial(
        "bert-silent", {"baseline": 0.06, "compile": 0.06}, metric="eval_loss", spread=0.004,
        margin=0.05, applied=False,
    )  # fmt: skip


def ineligible() -> ReportInput:
    """Nothing was started."""
    reasons = [
        _reason("framework_unsupported", "block", "No compiler exists for xgboost training.",
                "Use tree_method=hist or a larger instance instead."),
        _reason("not_gpu", "info", "ml.m5.xlarge has no GPU.", ""),
    ]  # fmt: skip
    eligibility = _eligibility("xgb-churn", "ineligible", reasons, compile_reasons=reasons)
    decision = {
        "schema": 1, "workload": "xgb-churn", "decision_id": "m2k4t7xz-ineligible",
        "judge_version": "0.1.0", "stage": "eligibility", "verdict": "ineligible",
        "candidate": None, "speedup": None, "quality": None, "arms": [], "saving": None,
        "next": None, "trial": "m2k4t7xz",
        "reasons": [{"code": "framework_unsupported", "message": reasons[0]["message"]}],
        "flag": {"name": FLAG.format("xgb-churn"), "action": "disable"},
    }  # fmt: skip
    return {
        "decision": decision, "evidence": None, "eligibility": eligibility, "plan": None,
        "context": {"stage": "local", "trial": "m2k4t7xz", "simulated": SIMULATED},
    }  # fmt: skip


def failed() -> ReportInput:
    """The trial ended without a decision."""
    found = promote()
    return {
        **found, "decision": None,
        "context": {**found["context"], "failure": "ResourceLimitExceeded: the account may use "
                    "0 ml.g5.xlarge for training. Ask for a quota increase."},
    }  # fmt: skip


STORIES = {
    "promote": promote, "stay_off": stay_off, "inconclusive": inconclusive,
    "ineligible": ineligible, "invalid": invalid,
}  # fmt: skip


def _trial(
    workload: str,
    arms: dict[str, float],
    *,
    metric: str,
    spread: float,
    margin: float,
    goal: str = "minimize",
    blocks: int = 3,
    recompiles: int = 0,
    applied: bool = True,
) -> ReportInput:
    random_numbers = random.Random(workload)
    names = {"compile": {"compiler": "torch_compile"},
             "compile-b48": {"compiler": "torch_compile", "batch_size": 48}}  # fmt: skip
    document: dict[str, Any] = {
        "schema": 1, "workload": workload, "phase": "trial", "promoted": None,
        "policy": {"promote_speedup": 1.2, "reject_speedup": 1.1, "alpha": 0.05,
                   "quality_runs": "shadow", "max_quality_runs": 3, "probation_runs": 12,
                   "max_trial_usd": 20.0},
        "quality": {"metric": metric, "goal": goal, "margin": margin, "history": []},
        "runs_per_week": 14, "runs_remaining": 728,
        "plan": {"speed_steps": STEPS, "blocks_per_round": 3, "max_blocks": 6, "seeds": list(SEEDS),
                 "usd_per_block": 0.02, "usd_per_quality_run": 0.05, "spent_usd": 0.2134},
        "arms": [
            {"name": name, "usd_per_hour": USD_PER_HOUR, "devices": 1,
             "full_run_steps": FULL_STEPS // 3 if name == "compile-b48" else FULL_STEPS,
             "overrides": names.get(name, {}), "runs": []}
            for name in arms
        ],
    }  # fmt: skip
    for block in range(blocks):
        node = random_numbers.gauss(1, 0.04)
        for arm in document["arms"]:
            step = arms[arm["name"]] * node
            arm["runs"].append(
                _segment(
                    random_numbers, arm["name"], block, step, recompiles=recompiles, applied=applied
                )
            )
    if _settled_by_speed(document):
        return _as_input(document, workload)
    for order, seed in enumerate(SEEDS):
        for arm in document["arms"][:2]:
            arm["runs"].append(
                _full_run(
                    random_numbers,
                    arm["name"],
                    order,
                    seed,
                    step=arms[arm["name"]],
                    goal=goal,
                    spread=spread,
                )
            )
    return _as_input(document, workload)


def _settled_by_speed(document: dict[str, Any]) -> bool:
    return judge(document).stage == "speed" and judge(document).verdict != "continue"


def _compiler(arm: str, recompiles: int, applied: bool) -> dict[str, Any]:
    compiled = arm != "baseline"
    return {
        "requested": "torch_compile" if compiled else "none", "applied": applied or not compiled,
        "proof": "3 graphs", "compile_seconds": 2.4 if compiled else 0.0,
        "graphs": 3 if compiled else 0, "recompiles": recompiles if compiled else 0,
        "graph_breaks": 0,
    }  # fmt: skip


def _segment(
    random_numbers: random.Random,
    arm: str,
    block: int,
    step: float,
    *,
    recompiles: int,
    applied: bool,
) -> dict[str, Any]:
    compiled = arm != "baseline"
    seconds = [step * random_numbers.lognormvariate(0, 0.03) for _ in range(STEPS)]
    for index in range(8):
        seconds[index] *= 1 + 0.6 * math.exp(-index / 3)
    if compiled:
        seconds[0] += 2.1
        seconds[1] += 0.3
        for place in random_numbers.sample(range(30, STEPS), recompiles):
            seconds[place] += 0.9
    return {
        "stage": "speed", "block": block, "node": f"cg-s{block // 3}-r0",
        "job": f"cg-s{block // 3}-r0",
        "finished": True, "applied": applied or not compiled, "step_seconds": seconds,
        "samples_per_step": 48 if arm == "compile-b48" else 16,
        "compile_seconds": 2.4 if compiled else 0.0,
        "cold_compile_seconds": 38.5 if compiled else None,
        "compiler": _compiler(arm, recompiles, applied), "peak_memory_gib": 0.61,
        "fingerprint": {**FINGERPRINT, "global_batch": 48 if arm == "compile-b48" else 16},
        "initial_loss": 2.77, "reason": None, "full_run_steps": FULL_STEPS,
    }  # fmt: skip


def _full_run(
    random_numbers: random.Random, arm: str, order: int, seed: int, *, step: float, goal: str,
    spread: float,
) -> dict[str, Any]:  # fmt: skip
    # Fixed places around the mean: a lucky draw must not decide what a story shows.
    place = (0.9, -1.1, 0.2)[seed - SEEDS[0]] + (0.15 if arm == "baseline" else 0.0)
    final = (0.71 if goal == "maximize" else 1.62) + spread * place
    overhead = 12.0 + (2.4 if arm != "baseline" else 0.0)
    curve = [
        [s, 1.45 + 1.4 * math.exp(-s / 260) + random_numbers.gauss(0, 0.06), round(s * step, 4)]
        for s in range(1, FULL_STEPS + 1, 6)
    ]
    return {
        "stage": "quality", "mode": "shadow", "order": 2 * order + (arm != "baseline"),
        "seed": seed, "metric": final, "wall_seconds": overhead + FULL_STEPS * step,
        "finished": True, "applied": True, "job": f"cg-q{order}-{arm}-r0", "reason": None,
        "compiler": _compiler(arm, 0, applied=True), "fingerprint": FINGERPRINT,
        "initial_loss": 2.77 + seed / 1000, "peak_memory_gib": 0.74, "loss_curve": curve,
    }  # fmt: skip


def _as_input(document: dict[str, Any], workload: str) -> ReportInput:
    decision = {**judge(document).to_dict(FLAG.format(workload)), "trial": "m2k4t7xz"}
    notes = [_reason("batch_may_shrink", "warn", "The compiler needs memory of its own.",
                     "Watch peak memory.")]  # fmt: skip
    return {
        "decision": decision,
        "evidence": document,
        "eligibility": _eligibility(workload, "benchmark", [], compile_reasons=notes),
        "plan": _plan(document),
        "context": {"stage": "local", "trial": "m2k4t7xz", "simulated": SIMULATED},
    }


def _plan(document: dict[str, Any]) -> dict[str, Any]:
    arms = [
        {"name": arm["name"], "compiler": arm["overrides"].get("compiler", "none"),
         "image": "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.8-gpu",
         "instance_type": "ml.g5.xlarge", "instance_count": 1, "devices": 1,
         "usd_per_hour": USD_PER_HOUR, "precision": "fp32",
         "batch_size": arm["overrides"].get("batch_size", 16), "learning_rate": 5e-4,
         "distribution": "none", "overrides": arm["overrides"]}
        for arm in document["arms"]
    ]  # fmt: skip
    return {
        "schema": 1, "workload": document["workload"], "arms": arms, "seeds": list(SEEDS),
        "speed_steps": STEPS, "blocks_per_round": 3, "max_blocks": 6, "usd_per_block": 0.02,
        "usd_per_quality_run": 0.05, "max_trial_usd": 20.0, "trial": "m2k4t7xz",
        "estimate": {"usd": 0.42, "hours": 0.3, "speed_usd": 0.12, "quality_usd": 0.3},
    }  # fmt: skip


def _reason(code: str, severity: str, message: str, fix: str) -> dict[str, str]:
    return {"code": code, "severity": severity, "field": "training", "message": message,
            "fix": fix, "source": "facts"}  # fmt: skip


def _eligibility(
    workload: str, verdict: str, reasons: list[Any], *, compile_reasons: list[Any]
) -> dict[str, Any]:
    return {
        "workload": workload, "verdict": verdict, "reasons": reasons,
        "candidates": [{"name": "compile", "compiler": "torch_compile", "verdict": verdict,
                        "reasons": compile_reasons}],
        "economics": {"annual_training_usd": 152.4, "plausible_annual_saving_usd": [0, 50.8],
                      "trial_usd": 0.42, "break_even_run_minutes": None, "payback_days": 9.1,
                      "prices_as_of": "2026-09-01"},
    }  # fmt: skip
