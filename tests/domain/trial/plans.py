"""Recorded plans for tests of a running trial."""

from __future__ import annotations

from typing import Any

from compilegate.domain.decision import SHADOW
from compilegate.domain.planning.arms import CANDIDATE, CONTROL, ArmPlan
from compilegate.domain.trial.plan import QualityMode, RecordedPlan


def arm(name: str, **changes: Any) -> ArmPlan:
    values: dict[str, Any] = {
        "name": name, "compiler": "none", "image": "i", "instance_type": "ml.g5.xlarge",
        "instance_count": 1, "devices": 1, "usd_per_hour": 2.0, "precision": "fp16",
        "batch_size": 8, "learning_rate": 0.1, "distribution": "none", "overrides": {},
        "role": CONTROL if name.endswith("control") else CANDIDATE,
    }  # fmt: skip
    return ArmPlan(**{**values, **changes})


def plan(*names: str, **changes: Any) -> RecordedPlan:
    values: dict[str, Any] = {
        "speed_steps": 160, "blocks_per_round": 2, "max_blocks": 6, "usd_per_block": 1.0,
        "usd_per_quality_run": 5.0, "max_trial_usd": 100.0, "max_quality_runs": 12,
        "quality_mode": QualityMode(SHADOW, SHADOW),
    }  # fmt: skip
    return RecordedPlan(arms=tuple(arm(name) for name in names), **{**values, **changes})
