"""Every rule both ways: what it says, where, and what the verdict becomes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import (
    Candidate,
    FactOverrides,
    Framework,
    InstanceGroup,
    Model,
    OwnImage,
    Profile,
    Schedule,
    Workload,
)
from compilegate.facts import load_facts
from tests.domain.workload_builder import (
    COMPILE,
    MANAGED,
    PAIR,
    PYTORCH_XLA,
    SOUND,
    TENSORFLOW,
    TRCOMP,
    XGBOOST,
    XLA,
    change,
    check,
    severities,
)

OLDER, TOO_OLD, NEWER, NONE = (
    replace(COMPILE, framework=Framework("pytorch", version))
    for version in ("2.8.0", "1.13.1", "2.13.0", "2.99")
)
LARGER = replace(COMPILE, batch_size=48, learning_rate_scaling="linear")
FP8 = Candidate(name="fp8", precision="fp8")
P4D = Candidate(name="p4d", instance_type="ml.p4d.24xlarge")
TWO_P4D = replace(P4D, instance_count=2)
HF_LAST = Framework("huggingface-pytorch", "1.11.0", "4.21.1")
# The PyTorch estimator starts both of its data parallel launchers by one runner.
SMDDP = change(
    SOUND, framework=Framework("pytorch", "2.1.0"), training__instance_type="ml.p4d.24xlarge",
    training__distribution="smddp",
)  # fmt: skip
Case = tuple[Workload, dict[str, Any], str, str, str]

CASES: list[Case] = [
    # bottleneck
    (SOUND, {"profile": Profile(0.9, 0.6, 0.1)}, "data_bound", "block", "ineligible"),
    (SOUND, {"profile": Profile(0.9, 0.1, 0.6)}, "communication_bound", "block", "ineligible"),
    (SOUND, {"profile": Profile(0.9, 0.3, 0.1)}, "data_bound", "warn", "benchmark"),
    (SOUND, {"profile": Profile(0.9, 0.1, 0.3)}, "communication_bound", "warn", "benchmark"),
    (SOUND, {"profile": Profile(0.3, None, None)}, "low_gpu_utilization", "warn", "benchmark"),
    (SOUND, {"profile": Profile(0.9, 0.01, 0.0), "policy__min_mean_speedup": 1.5},
     "speedup_below_policy", "block", "ineligible"),
    # hardware
    (SOUND, {"training__instance_groups": (InstanceGroup("a", "ml.g5.xlarge", 1),)},
     "heterogeneous_cluster", "block", "ineligible"),
    (SOUND, {"training__instance_type": "ml.m5.xlarge"}, "not_gpu", "block", "ineligible"),
    (
        SOUND, {"training__instance_type": "ml.p3.2xlarge",
                "candidates": (Candidate(name="g5", instance_type="ml.g5.2xlarge"),)},
        "instance_retired", "block", "ineligible",
    ),
    (SOUND, {"training__instance_type": "ml.g5.49xlarge"}, "instance_unsupported", "block",
     "ineligible"),
    # frameworks and images
    (TENSORFLOW, {"candidates": (COMPILE,)}, "framework_unsupported", "block", "ineligible"),
    (SOUND, {"framework": Framework("pytorch", "1.13.1")}, "version_unsupported", "block",
     "ineligible"),
    (SOUND, {"framework": Framework("pytorch", "2.99")}, "no_compiler_image", "block",
     "ineligible"),
    (SOUND, {"framework": Framework("other", "1")}, "framework_unsupported", "block", "ineligible"),
    (SOUND, {"framework": Framework("pytorch", "2.1.0")}, "image_unpatched", "info", "eligible"),
    (SOUND, {"model": Model("diffusion", "unet")}, "family_unproven", "warn", "benchmark"),
    (SOUND, {"candidates": (OLDER,)}, "framework_downgrade", "info", "eligible"),
    (SOUND, {"framework": Framework("pytorch", "2.8.0"), "candidates": (NEWER,)},
     "framework_change", "info", "eligible"),
    (SOUND, {"candidates": (TOO_OLD,)}, "version_unsupported", "block", "ineligible"),
    (SOUND, {"candidates": (NONE,)}, "no_compiler_image", "block", "ineligible"),
    # the managed compiler's matrix, beside test_eligibility_sdk_gaps.py
    (SOUND, {"candidates": (PAIR,)}, "framework_downgrade", "info", "benchmark"),
    (SOUND, {"candidates": (PAIR,)}, "script_needs_port", "warn", "benchmark"),
    (SOUND, {"candidates": (replace(PAIR, framework=HF_LAST),)}, "no_same_version_baseline", "warn",
     "benchmark"),
    (SOUND, {"framework": Framework("other", "1"), "candidates": (MANAGED,)},
     "framework_unsupported", "block", "ineligible"),
    (TRCOMP, {}, "image_unpatched", "warn", "eligible"),
    # launching
    (PYTORCH_XLA, {"training__distribution": "pytorchxla"}, "distribution_unsupported", "block",
     "ineligible"),
    (SOUND, {"training__distribution": "none"}, "distribution_missing", "warn", "eligible"),
    (PYTORCH_XLA, {}, "script_needs_port", "warn", "benchmark"),
    (PYTORCH_XLA, {"candidates": (replace(XLA, entry_point="start.sh"),)},
     "script_unsupported", "block", "ineligible"),
    (TENSORFLOW, {"training__instance_count": 2}, "script_needs_port", "warn", "benchmark"),
    (SOUND, {"framework": Framework("pytorch", "1.12.0")}, "distribution_unsupported", "block",
     "ineligible"),
    (SOUND, {"training__hyperparameters": {"sagemaker_mpi_enabled": True}},
     "reserved_hyperparameter", "block", "ineligible"),
    (SOUND, {"candidates": (replace(
        COMPILE, hyperparameters={"sagemaker_program": "other.py"}),)},
     "reserved_hyperparameter", "block", "ineligible"),
    (SOUND, {"training__hyperparameters": {"debugger_hook_config": True}}, "profiler_on", "warn",
     "eligible"),
    # shapes
    (SOUND, {"shapes__loader": "custom"}, "custom_loader", "warn", "benchmark"),
    (SOUND, {"model": Model("vision", "resnet50"), "shapes__padding": "none"},
     "shapes_by_augmentation", "warn", "benchmark"),
    (SOUND, {"shapes__static": False}, "dynamic_shapes", "warn", "benchmark"),
    (SOUND, {"shapes__padding": "longest"}, "padding_longest", "warn", "benchmark"),
    (SOUND, {"shapes__drop_last": False}, "ragged_last_batch", "info", "eligible"),
    # amortisation
    (SOUND, {"schedule": Schedule(3000, 0.25)}, "run_too_short", "block", "ineligible"),
    (SOUND, {"schedule": Schedule(3000, 0.01), "profile": Profile(compile_seconds=3)},
     "run_too_short", "warn", "benchmark"),
    (SOUND, {"schedule": Schedule(3000, 0.002), "profile": Profile(compile_seconds=3)},
     "run_too_short", "block", "ineligible"),
    (TRCOMP, {"schedule": Schedule(300, 0.75)}, "run_too_short", "block", "ineligible"),
    (SOUND, {"candidates": (replace(COMPILE, compile_mode="max-autotune"),)},
     "compile_mode_cost", "info", "eligible"),
    (SOUND, {"candidates": (replace(COMPILE, compile_mode="reduce-overhead"),),
             "shapes__static": False}, "compile_mode_cost", "warn", "benchmark"),
    # precision
    (SOUND, {"training__precision": "fp32"}, "fp32_only", "warn", "eligible"),
    (SOUND, {"candidates": (FP8,)}, "precision_unsupported", "block", "ineligible"),
    (SOUND, {"training__instance_type": "ml.g4dn.12xlarge"}, "precision_unsupported", "warn",
     "eligible"),
    (SOUND, {"candidates": (FP8,), "training__instance_type": "ml.p5.48xlarge"},
     "script_needs_port", "warn", "benchmark"),
    # batch and learning rate
    (SOUND, {"candidates": (replace(
        COMPILE, batch_size=48, learning_rate_scaling="sqrt"),)},
     "learning_rate_warmup", "info", "eligible"),
    (SOUND, {"profile": Profile(peak_memory_gib=18.0), "candidates": (LARGER,)},
     "memory_headroom", "warn", "benchmark"),
    (SOUND, {"profile": Profile(peak_memory_gib=30.0), "training__instance_type": "ml.p4d.24xlarge",
             "candidates": (Candidate(name="g5", instance_type="ml.g5.48xlarge"),)},
     "memory_headroom", "block", "ineligible"),
    (SOUND, {"candidates": (TWO_P4D,)}, "learning_rate_unscaled", "warn", "eligible"),
    (SOUND, {"candidates": (LARGER,), "training__hyperparameters": {"warmup_steps": 300}},
     "warmup_unscaled", "warn", "eligible"),
    (SOUND, {"candidates": (LARGER,), "training__hyperparameters": {"max_steps": 9000}},
     "run_length_unscaled", "warn", "eligible"),
    (TENSORFLOW, {"model__name": "bert-base-uncased"}, "batch_may_shrink", "warn", "benchmark"),
    # dollars
    (SOUND, {"schedule": Schedule(0.1, 6)}, "saving_below_trial_cost", "block", "ineligible"),
    (SOUND, {"training__instance_type": "ml.g6e.48xlarge"}, "price_unknown", "warn", "eligible"),
    (SOUND, {"training__instance_type": "ml.g5.xlarge", "training__distribution": "none",
             "candidates": (P4D,)},
     "cluster_too_dear", "warn", "eligible"),
    # one job twice
    (SMDDP, {"candidates": (Candidate(name="ddp", distribution="pytorchddp"),)},
     "same_job", "block", "ineligible"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[2]}-{case[3]}")
def test_a_workload_gets_this_reason_and_this_verdict(case):
    workload, changes, code, severity, verdict = case

    eligibility = check(change(workload, **changes))

    assert severity == severities(eligibility).get(code)
    assert verdict == eligibility.verdict
    for reason in (*eligibility.reasons, *(r for c in eligibility.candidates for r in c.reasons)):
        assert all((reason.field, reason.message, reason.fix, reason.source))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"profile": Profile(0.9, 0.05, 0.10)}, "data_bound"),
        ({"profile": Profile(0.3, 0.4, 0.0)}, "low_gpu_utilization"),
        ({"training__instance_type": "ml.g5.2xlarge", "training__distribution": "none"},
         "distribution_missing"),
        ({"candidates": (LARGER,)}, "learning_rate_unscaled"),
        ({"candidates": (FP8,), "training__instance_type": "ml.p5.48xlarge"},
         "precision_unsupported"),
        ({"candidates": (P4D,),
          "schedule": Schedule(3000, 0.001)}, "run_too_short"),
        ({"candidates": (Candidate(name="bf16", precision="bf16"),),
          "shapes__static": False}, "dynamic_shapes"),
        ({"schedule": Schedule(3000, 0.01), "profile": Profile(compile_seconds_cold=5)},
         "run_too_short"),
        ({"model": Model("vision", "resnet50"), "shapes__padding": "max_length"},
         "shapes_by_augmentation"),
        ({"profile": Profile(peak_memory_gib=14.0), "candidates": (LARGER,)}, "memory_headroom"),
        ({"profile": Profile(data_wait_fraction=0.0), "policy__min_mean_speedup": 2.0},
         "data_bound"),
        ({"policy__min_mean_speedup": 1.5}, "speedup_below_policy"),
        ({"candidates": (P4D,)},
         "cluster_too_dear"),
        ({"candidates": (Candidate(name="ddp", distribution="none"),)}, "same_job"),
        ({"candidates": (replace(LARGER, hyperparameters={"warmup_steps": 200}),),
          "training__hyperparameters": {"warmup_steps": 300}}, "warmup_unscaled"),
        ({"candidates": (LARGER,), "training__hyperparameters": {"epochs": 3, "max_steps": -1}},
         "run_length_unscaled"),
        ({"candidates": (LARGER,), "training__hyperparameters": {"epochs": 3, "steps": 500}},
         "run_length_unscaled"),
        ({"candidates": (replace(
            LARGER, hyperparameters={"gradient_accumulation_steps": 2}),),
          "training__hyperparameters": {"warmup_steps": 9, "gradient_accumulation_steps": 3}},
         "warmup_unscaled"),
    ],
)  # fmt: skip
def test_a_rule_gives_no_reason_below_its_threshold(changes, code):
    assert code not in severities(check(change(SOUND, **changes)))


# What single reasons say: the figure, the name, the field and the way out.
TWICE = replace(COMPILE, batch_size=64, learning_rate_scaling="linear")
BY_DDP, BY_SMDDP = (Candidate(name=name, distribution=name) for name in ("pytorchddp", "smddp"))
PARALLEL = change(
    SOUND, framework=Framework("pytorch", "2.1.0"), training__instance_type="ml.p4d.24xlarge"
)


def with_profile(*shares: float, **figures: float) -> Workload:
    return change(SOUND, profile=Profile(*shares, **figures))


def with_candidates(*candidates: Candidate, base: Workload = SOUND) -> Workload:
    return change(base, candidates=candidates)


def reason_of(workload: Workload, code: str) -> Reason:
    """The one reason of this code, of the last candidate or of the workload."""
    eligibility = check(workload)
    reasons = (*eligibility.candidates[-1].reasons, *eligibility.reasons)
    (reason,) = (reason for reason in reasons if reason.code == code)
    return reason


# Code, workload, what the message names, what the fix names.
SAYS: list[tuple[str, Workload, str, str]] = [
    # By Amdahl: one over 0.6 + 0.4 / 1.5, and one over 0.7 + 0.3 / 1.5.
    ("data_bound", with_profile(0.9, 0.6, 0.0), "1.15 times", "60%"),
    ("low_gpu_utilization", with_profile(gpu_utilization=0.3), "1.11 times", ""),
    # Amdahl on the published 1.5 to 5.5 times, with 20 % of a step waiting.
    ("fp32_only", change(SOUND, training__precision="fp32", profile=Profile(
        data_wait_fraction=0.2)), "1.4 to 2.9 times", "bf16"),
    ("instance_unsupported", change(SOUND, training__instance_type="ml.g5.49xlarge"), "49xlarge",
     "ml.g5.48xlarge"),
    ("not_gpu", change(SOUND, training__instance_type="ml.m6i.12xlarge"), "ml.m6i",
     "ml.g4dn.xlarge"),
    ("memory_headroom", change(with_candidates(TWICE), profile=Profile(peak_memory_gib=16.0)),
     "up to 32 GiB", "up to 48"),
    # 160 without the compiler, 128 with it.
    ("batch_may_shrink", change(TENSORFLOW, model__name="bert-base-uncased",
                                training__batch_size=160), "128", "batch_size: 128"),
    ("run_too_short", change(SOUND, schedule=Schedule(3000, 0.2)), "longer than 15 min",
     "profile.compile_seconds"),
    ("same_job", with_candidates(BY_DDP, BY_SMDDP, base=PARALLEL), "same job as pytorchddp", ""),
]  # fmt: skip


@pytest.mark.parametrize(("code", "workload", "message", "fix"), SAYS, ids=[row[0] for row in SAYS])
def test_a_reason_gives_its_figures_and_names(code, workload, message, fix):
    reason = reason_of(workload, code)

    assert message in reason.message
    assert fix in reason.fix


@pytest.mark.parametrize(
    ("margin", "wide"), [(0.005, False), (0.4, False), (0.5, True), (5.0, True)]
)
def test_a_margin_of_half_the_metric_is_doubted(margin, wide):
    codes = [reason.code for reason in check(change(SOUND, quality__margin=margin)).reasons]

    assert wide == ("margin_wide" in codes)


@pytest.mark.parametrize(
    ("base", "image"),
    [
        (change(TRCOMP, framework=Framework("huggingface-pytorch", "1.11.0", "4.21.1", "py38")),
         OwnImage(
            framework="huggingface-pytorch", version="1.11.0", uri="", transformers="4.21.1",
            python="py38")),
        (with_candidates(XLA), OwnImage(
            framework="pytorch", version="2.13.0", uri="", compiler=MANAGED.compiler)),
    ],
    ids=["a baseline of the same versions", "a managed compiler of a newer version"],
)  # fmt: skip
def test_an_own_image_fills_a_gap_of_the_matrix(base, image):
    uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:1"
    facts = load_facts().overridden(FactOverrides(images=(replace(image, uri=uri),)))

    assert {"image_unpatched": "warn"} == severities(check_eligibility(base, facts))


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        (with_candidates(PAIR), {"torch_compile"}),
        (PYTORCH_XLA, {"torch_compile on PyTorch 2"}),
        (TENSORFLOW, set()),
        (change(TENSORFLOW, training__instance_count=2, training__batch_size=160), set()),
        (with_candidates(MANAGED, base=XGBOOST), set()),
    ],
)
@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1"])
def test_torch_compile_is_advised_only_where_it_runs(workload, names, region):
    reasons = check(workload, region=region).candidates[0].reasons
    fixes = " ".join(reason.fix for reason in reasons)

    assert names == set(re.findall(r"torch_compile(?: on PyTorch 2)?", fixes))
