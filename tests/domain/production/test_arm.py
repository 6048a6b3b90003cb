"""A flag's overrides laid over the registered job."""

from __future__ import annotations

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arms import plan_arms, promoted
from compilegate.domain.production.job import baseline_arm, with_overrides
from compilegate.domain.workload.model import Candidate
from compilegate.facts import load_facts
from tests.domain.workload_builder import COMPILE, PAIR, PYTORCH_XLA, SOUND, XLA, change

FACTS = load_facts()
REGION = "us-east-1"
JOB = (
    "compiler", "compile_mode", "image", "instance_type", "instance_count", "devices",
    "usd_per_hour", "precision", "batch_size", "learning_rate", "distribution", "entry_point",
    "framework", "hyperparameters",
)  # fmt: skip
OTHERS = Candidate(
    name="other", compiler="torch_compile", compile_mode="max-autotune", batch_size=48,
    learning_rate_scaling="linear", instance_type="ml.p4d.24xlarge", instance_count=2,
    precision="fp16", entry_point="other.py", hyperparameters={"optim": "fused"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("workload", "candidate"),
    [(SOUND, COMPILE), (SOUND, OTHERS), (PYTORCH_XLA, XLA), (SOUND, PAIR)],
    ids=["compile", "everything", "managed", "framework"],
)
def test_production_trains_what_the_trial_proved(workload, candidate):
    """Overrides as the flag holds them make the very job of the trial's arm."""
    workload = change(workload, candidates=(candidate,))
    base, arm, *_ = plan_arms(workload, (candidate,), FACTS, region=REGION)
    flag = promoted(arm, base, decision_id="d")

    changed = with_overrides(
        baseline_arm(workload, FACTS, region=REGION), arm.name, flag.overrides, FACTS
    )

    for name in JOB:
        assert getattr(arm, name) == getattr(changed, name), name


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("compiler", "gcc"), ("precision", 16),  ("batch_size", 0),
        ("batch_size", True), ("learning_rate", -1.0), ("instance_type", "ml.unknown.large"),
        ("image", None), ("name", "baseline"),  ("hyperparameters", []),
        ("compile_mode", "bogus"), ("entry_point", "../x"), ("image", "bad image"),
        ("instance_count", 10**6), ("batch_size", 10**9), ("distribution", "bogus"),
        ("hyperparameters", {"a": {"b": 1}}),
        ("framework", {"name": "pytorch", "version": 2}),
        ("framework", {"name": "p", "version": "1", "x": 1}),
    ],
)  # fmt: skip
def test_an_override_that_does_not_fit_is_refused_by_name(key, value):
    base = baseline_arm(SOUND, FACTS, region=REGION)

    with pytest.raises(InvalidInputError) as raised:
        with_overrides(base, "compile", {key: value}, FACTS)
    assert f"flag.overrides.{key}" == raised.value.field
