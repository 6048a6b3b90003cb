"""Whole trials and months of production, step by step: what was answered and what was stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.frozen.jobs import Ends
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
    canary_overdue,
    changed_job,
    failing_runs,
    late,
    locked,
    lookups,
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
# How jobs of a trial end.
ENDINGS: dict[str, Callable[[], Ends]] = {
    "speed jobs crash": only(OUT_OF_MEMORY, "speed"),
    "one speed job crashes": only(OUT_OF_MEMORY, "speed", first=1),
    "speed without capacity": only(NO_CAPACITY, "speed"),
    "no capacity once": only(NO_CAPACITY, "speed", first=1),
    "speed stopped by others": only(STOPPED, "speed", first=1),
    "full runs crash": only(OUT_OF_MEMORY, "quality", "compile"),
    "one full run crashes": only(OUT_OF_MEMORY, "quality", "compile", first=1),
    "baselines crash": only(OUT_OF_MEMORY, "quality", "baseline"),
    "full runs without capacity": only(NO_CAPACITY, "quality"),
    "full runs without quota": only(NO_QUOTA, "quality", first=2),
    "full runs stopped by others": only(STOPPED, "quality", first=1),
    "full runs overdue": only(OVERDUE, "quality", "compile"),
    "diverged": only(
        {"output": {"finished": False, "metrics": {}, "reason": "loss is NaN"}},
        "quality", "compile",
    ),
    "unapplied": only(
        {"output": {"compiler": {"requested": "torch_compile", "applied": False}}},
        "quality", "compile",
    ),
    "other start": only({"output": {"initial_loss": 2.0}}, "quality", "compile"),
    "other machine": only({"output": {"fingerprint": {"gpu": "h"}}}, "quality", "compile"),
    "blocks fail": only(
        {"output": {"compile": {"finished": False, "reason": "crashed"}}}, "speed"
    ),
    "no evidence left": only({"output": None}, "quality", first=1),
}  # fmt: skip
SCENARIOS: dict[str, Callable[[], World]] = {
    **{name: partial(trial, ends=ends) for name, ends in ENDINGS.items()},
    "control fails": partial(
        trial, {**FP16, "candidates": PAIR},
        ends=only({"output": {"managed-native": {"finished": False}}}, "speed"),
    ),
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
        canary, "canary", ends=only(OUT_OF_MEMORY, "production", "compile")
    ),
    "canary nobody carries": canary_overdue,
    "production": production,
    "production, quality falls": partial(production, falls=0.02),
    "production, speed falls": partial(production, slower=1.6),
    "production crashes": partial(failing_runs, OUT_OF_MEMORY, arm="compile"),
    "production crashes in both arms": partial(failing_runs, OUT_OF_MEMORY, 2),
    "production crashes once": partial(failing_runs, OUT_OF_MEMORY, 8, 1, "compile"),
    "production without capacity": partial(failing_runs, NO_CAPACITY, 2),
    "production waits once": partial(failing_runs, NO_CAPACITY, 2, 1),
    "production stopped": partial(failing_runs, STOPPED, 2),
    "production overdue": partial(failing_runs, OVERDUE, 3),
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
