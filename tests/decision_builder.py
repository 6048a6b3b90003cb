"""A recorded decision, as the steps after the judge read it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from compilegate.domain.decision import FLAG_ACTIONS, ArmFigures, ControlFigures, Verdict


def decision_document(verdict: str = "promote", **changes: Any) -> dict[str, Any]:
    """The decision d1 on the candidate ``compile``, with the flag's action of its verdict."""
    return {
        "schema": 1, "workload": "bert-docs", "decision_id": "d1", "judge_version": "0",
        "stage": "quality", "verdict": verdict, "candidate": "compile",
        "reasons": [{"code": "speedup_proven", "message": "1.4 times as fast"}],
        "flag": {
            "name": "/compilegate/prod/bert-docs/flag",
            "action": str(FLAG_ACTIONS[Verdict(verdict)]),
        },
        **changes,
    }  # fmt: skip


def saving(usd_per_run: float) -> dict[str, Any]:
    """What a saving of this size has in a decision document; a run costs $100, a week has one."""
    return {
        "usd_per_run": usd_per_run, "interval_usd_per_run": None, "usd_per_run_baseline": 100.0,
        "usd_per_year": 52 * usd_per_run, "interval_usd_per_year": None, "trial_usd": None,
        "payback_runs": None, "break_even_run_minutes": None, "same_quality": None,
    }  # fmt: skip


def speedup(estimate: float) -> dict[str, Any]:
    """What a speed-up of three blocks has in a decision document, within 5 % of the estimate."""
    return {
        "estimate": estimate, "interval": [0.95 * estimate, 1.05 * estimate], "confidence": 0.95,
        "lower_bound": 0.96 * estimate, "blocks": 3, "full_runs": 0, "predicted": None,
        "measured": None, "weight": 0.0, "disagreement": 0.02,
    }  # fmt: skip


def arm_figures(**measured: Any) -> ArmFigures:
    """The figures of an arm of which nothing else was measured."""
    unknown = dict.fromkeys(one.name for one in fields(ArmFigures))
    return ArmFigures(**{**unknown, "runs": 0, "failed_runs": 0, **measured})


def control_figures(name: str, reason: str | None, **speedups: float | None) -> ControlFigures:
    """The figures of a control of ``compile``: its two speed-ups, or why there are none."""
    ratios = {"speedup": None, "compiler_speedup": None, **speedups}
    own = vars(arm_figures(name=name))
    return ControlFigures(**own, candidate="compile", blocks=0, reason=reason, **ratios)
