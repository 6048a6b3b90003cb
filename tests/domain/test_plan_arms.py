"""Arms of a plan: what each changes, what stands beside it, and why it is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.codec import read
from compilegate.domain.planning.arms import ArmPlan, plan_arms
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Candidate, Framework, Profile, Workload
from compilegate.facts import load_facts
from tests.domain.workload_builder import ARTICLE, COMPILE, PYTORCH_XLA, SOUND, XLA, change
from tests.domain.workload_builder import PAIR as MANAGED_PAIR

PAIR = replace(MANAGED_PAIR, name="managed-pair")
PRICES = load_facts().prices


def arms_of(workload: Workload, *candidates: Candidate) -> dict[str, ArmPlan]:
    arms = plan_arms(workload, candidates, load_facts(), region="us-east-1")
    assert not isinstance(arms, Reason), arms
    return {arm.name: arm for arm in arms}


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"compiler": "torch_compile"}, "one factor: compiler"),
        ({"compiler": "torch_compile", "compile_mode": "max-autotune"}, "one factor: compiler"),
        ({"batch_size": 48, "learning_rate_scaling": "linear"}, "one factor: batch size"),
        ({"batch_size": 32}, "changes nothing"),
        ({"precision": "fp8"}, "one factor: precision"),
        ({"instance_type": "ml.p4d.24xlarge"}, "one factor: instances"),
        ({"instance_count": 2}, "bundle of batch size and instances"),
        ({"instance_count": 2, "batch_size": 16}, "one factor: instances"),
        ({"distribution": "smddp"}, "one factor: distribution"),
        ({"entry_point": "other.py"}, "one factor: script"),
        ({"hyperparameters": {"warmup": 10}}, "one factor: hyperparameters"),
        (
            {"compiler": "torch_compile", "batch_size": 48},
            "bundle of compiler and batch size",
        ),
        (
            {"compiler": "torch_compile", "batch_size": 48, "precision": "fp16"},
            "bundle of compiler, batch size and precision",
        ),
    ],
)
def test_an_arm_is_labelled_by_the_factors_that_it_changes(changes, label):
    arms = arms_of(SOUND, Candidate(name="arm", **changes))  # type: ignore[arg-type]

    assert ("as it runs today", label) == (arms["baseline"].label, arms["arm"].label)


RATE = SOUND.training.learning_rate
TWICE = Candidate(name="twice", instance_count=2, learning_rate_scaling="linear")
PORTED = replace(PAIR, batch_size=48, entry_point="train_xla.py", hyperparameters={"a": 1})
ONE_GPU = change(SOUND, training__instance_type="ml.g5.xlarge", training__distribution="none")
NATIVE = "managed-pair-native"
# What of an arm follows from what: workload, candidate, the arm's name, fields.
ARMS: list[tuple[Workload, Candidate, str, dict[str, object]]] = [
    # The launcher that only the managed compiler has is no factor of its own.
    (PYTORCH_XLA, XLA, "managed", {"factors": ("compiler",)}),
    # The learning rate follows the batch of all devices.
    (SOUND, Candidate(name="b64", batch_size=64, learning_rate_scaling="linear"), "b64",
     {"global_batch": 512, "learning_rate": 2 * RATE}),
    (SOUND, TWICE, "twice", {"global_batch": 512, "learning_rate": 2 * RATE}),
    (SOUND, replace(TWICE, name="kept", batch_size=16), "kept",
     {"global_batch": 256, "learning_rate": RATE}),
    # A control keeps batch and precision, but not the compiler's own launcher and script.
    (ARTICLE, PAIR, NATIVE,
     {"role": "control", "compiler": "none", "distribution": "torch_distributed"}),
    (ARTICLE, PORTED, NATIVE, {"batch_size": 48, "entry_point": None, "hyperparameters": {}}),
    (ONE_GPU, PAIR, NATIVE, {"distribution": "none"}),
    (SOUND, Candidate(name="p4d", instance_type="ml.p4d.24xlarge", instance_count=2), "p4d",
     {"devices": 16, "usd_per_hour": 2 * PRICES["ml.p4d.24xlarge"].usd_per_hour}),
    # A first compilation takes the profiled seconds, or the assumed, at most a run.
    (SOUND, COMPILE, "baseline", {"compile_seconds": None}),
    (SOUND, COMPILE, "compile", {"compile_seconds": 300.0}),
    (change(SOUND, profile=Profile(compile_seconds_cold=42.0)), COMPILE, "compile",
     {"compile_seconds": 42.0}),
    (change(SOUND, schedule__run_hours=0.01), COMPILE, "compile", {"compile_seconds": 36.0}),
]  # fmt: skip


@pytest.mark.parametrize(("workload", "candidate", "name", "fields"), ARMS)
def test_an_arm_has_these_fields(workload, candidate, name, fields):
    arm = arms_of(workload, candidate)[name]

    assert fields == {key: getattr(arm, key) for key in fields}


def test_an_older_framework_for_the_compiler_gets_a_control_without_it():
    arms = arms_of(ARTICLE, COMPILE, PAIR)
    control, pair = arms[NATIVE], arms["managed-pair"]

    assert ["baseline", "compile", "managed-pair", NATIVE] == list(arms)
    assert pair.framework == control.framework
    assert "pytorch-trcomp-training:1.13.1" in pair.image
    assert "pytorch-training:1.13.1" in control.image
    assert "never promoted" in control.why


def test_a_bundle_says_what_to_read_it_beside():
    bundle = Candidate(name="compile-b48", compiler="torch_compile", batch_size=48)

    assert "compare it with compile" in arms_of(SOUND, COMPILE, bundle)["compile-b48"].why
    assert "no other candidate" in arms_of(SOUND, bundle)["compile-b48"].why


@pytest.mark.parametrize(
    ("candidate", "code"),
    [
        (Candidate(name="odd", instance_type="ml.g9.xlarge"), "price_unknown"),
        (Candidate(name="odd", framework=Framework("pytorch", "0.4.1")), "no_compiler_image"),
    ],
)
def test_without_price_or_image_there_is_no_arm(candidate, code):
    refusal = plan_arms(SOUND, [candidate], load_facts(), region="us-east-1")

    assert isinstance(refusal, Reason)
    assert code == refusal.code


def test_a_recorded_arm_is_read_back_whatever_else_stands_beside_it():
    arm = arms_of(SOUND, COMPILE)["compile"]
    record = {key: value for key, value in vars(arm).items() if key not in ("role", "why")}

    assert replace(arm, why="") == read(ArmPlan, {**record, "label": "?", "newer": 1})


@pytest.mark.parametrize(
    ("workload", "candidate"),
    [
        (PYTORCH_XLA, replace(XLA, framework=PYTORCH_XLA.framework)),
        (PYTORCH_XLA, replace(XLA, framework=Framework("pytorch", "1.13"))),
        (ARTICLE, replace(PAIR, framework=Framework(
            "huggingface-pytorch", "1.11.0", "4.21.1", "py38"))),
        (SOUND, replace(PAIR, framework=Framework("tensorflow", "2.11.0"), distribution="none",
                        entry_point="tf.py")),
    ],
    ids=["the same versions", "written more loosely", "no image without the compiler",
         "a script of another framework"],
)  # fmt: skip
def test_no_control_is_planned(workload, candidate):
    assert ["baseline", candidate.name] == list(arms_of(workload, candidate))
