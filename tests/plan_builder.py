"""A recorded plan, as the steps after PlanTrial read it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from compilegate.domain.planning.arms import ArmPlan


def plan_record(*arms: ArmPlan, used: str = "shadow") -> dict[str, Any]:
    """The plan of a trial of these arms, whose full runs are made in the mode ``used``."""
    return {
        "arms": [asdict(arm) for arm in arms], "speed_steps": 100, "blocks_per_round": 3,
        "max_blocks": 9, "usd_per_block": 1.0, "usd_per_quality_run": 10.0, "max_trial_usd": 100.0,
        "max_quality_runs": 0, "spec_key": "", "execution": "", "started_at": 0, "quotas": [],
        "quality_mode": {"asked": used, "used": used},
    }  # fmt: skip
