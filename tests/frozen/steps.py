"""Whole trials and months of production, step by step: what was answered and what was stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.frozen.machines import NAME, World
from tests.frozen.recording import Case
from tests.frozen.scenarios import (
    NO_CAPACITY,
    NO_QUOTA,
    OUT_OF_MEMORY,
    OVERDUE,
    STOPPED,
    WORKLOAD,
    aborted,
    again,
    approval,
    by_hand,
    canary,
    changed_job,
    failing_nights,
    late,
    locked,
    lookups,
    nobody_carries,
    only,
    production,
    repeated,
    team,
    trial,
    weekly,
)

NATIVE = {"name": "pytorch", "version": "1.13.1", "python": "py39"}
PAIR = [{"name": "managed", "compiler": "sagemaker_training_compiler", "framework": NATIVE,
         "distribution": "pytorchxla"}]  # fmt: skip
FP16 = {"training__precision": "fp16"}
TWO = [WORKLOAD["candidates"][0], {"name": "b48", "compiler": "torch_compile", "batch_size": 48}]
P4D = [*WORKLOAD["candidates"], {"name": "p4d", "instance_type": "ml.p4d.24xlarge"}]
SCENARIOS: dict[str, Callable[[], World]] = {
    "promote": trial,
    "promote, hybrid without production": partial(trial, {"policy__quality_runs": "hybrid"}),
    "too slow": partial(trial, speedup=1.05),
    "slower": partial(trial, speedup=0.8),
    "unsettled speed": partial(trial, speedup=1.15),
    "worse quality": partial(trial, loss=0.02),
    "a little worse": partial(trial, loss=0.003),
    "two candidates": partial(trial, {"candidates": TWO}),
    "other machines": partial(trial, {"candidates": P4D}),
    "control": partial(trial, {**FP16, "candidates": PAIR}),
    "derived candidates": partial(trial, {"candidates": []}),
    "ineligible": partial(trial, {"training__instance_type": "ml.m5.xlarge"}),
    "refused for its cost": partial(trial, {"policy__max_trial_usd": 10}),
    "little money": partial(trial, {"policy__max_trial_usd": 600}),
    "few runs": partial(trial, {"policy__max_quality_runs": 2, "quality__margin": 0.0001}),
    "spot": partial(trial, {"training__spot": True, "training__max_wait_hours": 20}),
    "speed jobs crash": partial(trial, ends=only(OUT_OF_MEMORY, stage="speed")),
    "one speed job crashes": partial(trial, ends=only(OUT_OF_MEMORY, stage="speed", first=1)),
    "speed without capacity": partial(trial, ends=only(NO_CAPACITY, stage="speed")),
    "no capacity once": partial(trial, ends=only(NO_CAPACITY, stage="speed", first=1)),
    "speed stopped by others": partial(trial, ends=only(STOPPED, stage="speed", first=1)),
    "full runs crash": partial(
        trial, ends=only(OUT_OF_MEMORY, stage="quality", arm="compile")
    ),
    "one full run crashes": partial(
        trial, ends=only(OUT_OF_MEMORY, stage="quality", arm="compile", first=1)
    ),
    "baselines crash": partial(trial, ends=only(OUT_OF_MEMORY, stage="quality", arm="baseline")),
    "full runs without capacity": partial(trial, ends=only(NO_CAPACITY, stage="quality")),
    "full runs without quota": partial(trial, ends=only(NO_QUOTA, stage="quality", first=2)),
    "full runs stopped by others": partial(trial, ends=only(STOPPED, stage="quality", first=1)),
    "full runs overdue": partial(trial, ends=only(OVERDUE, stage="quality", arm="compile")),
    "diverged": partial(
        trial,
        ends=only({"output": {"finished": False, "metrics": {}, "reason": "loss is NaN"}},
                  stage="quality", arm="compile"),
    ),
    "unapplied": partial(
        trial,
        ends=only({"output": {"compiler": {"requested": "torch_compile", "applied": False}}},
                  stage="quality", arm="compile"),
    ),
    "other start": partial(
        trial, ends=only({"output": {"initial_loss": 2.0}}, stage="quality", arm="compile")
    ),
    "other machine": partial(
        trial, ends=only({"output": {"fingerprint": {"gpu": "h"}}}, stage="quality", arm="compile")
    ),
    "blocks fail": partial(
        trial, ends=only({"output": {"compile": {"finished": False, "reason": "crashed"}}},
                         stage="speed"),
    ),
    "control fails": partial(
        trial, {**FP16, "candidates": PAIR},
        ends=only({"output": {"managed-native": {"finished": False}}}, stage="speed"),
    ),
    "no evidence left": partial(trial, ends=only({"output": None}, stage="quality", first=1)),
    "approval nobody gives": approval,
    "approved": partial(approval, "flag", "approve", NAME, "--reason", "good", "--yes"),
    "rejected": partial(approval, "flag", "reject", NAME, "--reason", "bad", "--yes"),
    "locked": locked,
    "aborted": aborted,
    "repeated": repeated,
    "late": late,
    "canary": partial(canary, "canary"),
    "hybrid": partial(canary, "hybrid"),
    "canary, worse": partial(canary, "canary", loss=0.02),
    "canary, crashes": partial(
        canary, "canary", ends=only(OUT_OF_MEMORY, stage="production", arm="compile")
    ),
    "canary nobody carries": nobody_carries,
    "production": production,
    "production, quality falls": partial(production, falls=0.02),
    "production, speed falls": partial(production, slower=1.6),
    "production crashes": partial(failing_nights, OUT_OF_MEMORY, arm="compile"),
    "production crashes in both arms": partial(failing_nights, OUT_OF_MEMORY, 2),
    "production crashes once": partial(failing_nights, OUT_OF_MEMORY, 8, 1, "compile"),
    "production without capacity": partial(failing_nights, NO_CAPACITY, 2),
    "production waits once": partial(failing_nights, NO_CAPACITY, 2, 1),
    "production stopped": partial(failing_nights, STOPPED, 2),
    "production overdue": partial(failing_nights, OVERDUE, 3),
    "by hand": by_hand,
    "team": team,
    "changed job": changed_job,
    "another trial after a revert": again,
    "weekly": weekly,
    "lookups": lookups,
}  # fmt: skip


def cases() -> list[Case]:
    """Every scenario, its transcript and what is stored in the end."""
    return [Case(name, partial(_played, play)) for name, play in SCENARIOS.items()]


def _played(play: Callable[[], World]) -> Any:
    return play().state()
