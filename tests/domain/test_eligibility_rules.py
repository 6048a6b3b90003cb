"""Every rule both ways: what it says, where, and what the verdict becomes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from compilegate.domain.workload import Candidate, Framework, Model, Profile, Schedule, Workload
from tests.domain.workload_builder import (
    COMPILE,
    MANAGED,
    PYTORCH_XLA,
    SOUND,
    TENSORFLOW,
    TRCOMP,
    XLA,
    change,
    check,
    severities,
)

FP8 = Candidate(name="fp8", precision="fp8")
Case = tuple[Workload, dict[str, Any], str, str, str]

CASES: list[Case] = [
    # bottleneck
    (SOUND, {"profile": Profile(0.9, 0.6, 0.1)}, "data_bound", "block", "ineligible"),
    (SOUND, {"profile": Profile(0.9, 0.1, 0.6)}, "communication_bound", "block", "ineligible"),
    (SOUND, {"profile": Profile(0.9, 0.3, 0.1)}, "data_bound", "warn", "benchmark"),
    (SOUND, {"profile": Profile(0.9, 0.1, 0.3)}, "communication_bound", "warn", "benchmark"),
    (SOUND, {"profile": Profile(0.3, None, None)}, "low_gpu_utilization", "warn", "benchmark"),
    (SOUND, {"profile": Profile(None, 1.0, 1.0)}, "data_bound", "block", "ineligible"),
    # hardware
    (SOUND, {"training__instance_type": "ml.m5.xlarge"}, "not_gpu", "block", "ineligible"),
    (
        SOUND, {"training__instance_type": "ml.p3.16xlarge"}, "instance_retired", "block",
        "ineligible",
    ),
    (
        SOUND, {"training__instance_type": "ml.g5.49xlarge"}, "instance_unsupported", "block",
        "ineligible",
    ),
    (
        SOUND, {"training__instance_type": "ml.p3.2xlarge",
                "candidates": (Candidate(name="g5", instance_type="ml.g5.2xlarge"),)},
        "instance_retired", "block", "ineligible",
    ),
    # frameworks and images
    (TENSORFLOW, {"candidates": (COMPILE,)}, "framework_unsupported", "block", "ineligible"),
    (SOUND, {"framework": Framework("pytorch", "1.13.1")}, "version_unsupported", "block",
     "ineligible"),
    (SOUND, {"framework": Framework("pytorch", "2.99")}, "no_compiler_image", "block",
     "ineligible"),
    (SOUND, {"framework": Framework("other", "1")}, "framework_unsupported", "block",
     "ineligible"),
    (SOUND, {"framework": Framework("pytorch", "2.1.0")}, "image_unpatched", "info", "eligible"),
    (SOUND, {"model": Model("diffusion", "unet")}, "family_unproven", "warn", "benchmark"),
    (SOUND, {"model": Model("custom", "ours")}, "family_unproven", "warn", "benchmark"),
    (SOUND, {"model": Model("gbt", "trees")}, "framework_unsupported", "block", "ineligible"),
    # the managed compiler's matrix
    (SOUND, {"candidates": (MANAGED,)}, "version_unsupported", "block", "ineligible"),
    (SOUND, {"candidates": (MANAGED,)}, "framework_downgrade", "info", "ineligible"),
    (TRCOMP, {"framework__python": "py310"}, "version_unsupported", "block", "ineligible"),
    (TRCOMP, {"framework__transformers": "4.36.0"}, "version_unsupported", "block", "ineligible"),
    (TENSORFLOW, {"framework__version": "2.12.0"}, "version_unsupported", "block", "ineligible"),
    (SOUND, {"framework": Framework("other", "1"), "candidates": (MANAGED,)},
     "framework_unsupported", "block", "ineligible"),
    (TRCOMP, {}, "image_unpatched", "warn", "eligible"),
    (TRCOMP, {"framework": Framework("huggingface-pytorch", "1.11.0", "4.21.1")},
     "no_same_version_baseline", "warn", "benchmark"),
    (TRCOMP, {"training__instance_type": "ml.g6.xlarge"}, "instance_unsupported", "block",
     "ineligible"),
    (PYTORCH_XLA, {"training__instance_type": "ml.p5.48xlarge"}, "instance_unsupported", "block",
     "ineligible"),
    (TRCOMP, {"training__instance_type": "ml.p3.2xlarge"}, "instance_retired", "block",
     "ineligible"),
    # launching
    (PYTORCH_XLA, {"candidates": (MANAGED,)}, "distribution_unsupported", "block", "ineligible"),
    (PYTORCH_XLA, {"candidates": (MANAGED,), "training__distribution": "none"},
     "distribution_missing", "block", "ineligible"),
    (PYTORCH_XLA, {"candidates": (dataclasses.replace(MANAGED, distribution="smddp"),)},
     "distribution_unsupported", "block", "ineligible"),
    (PYTORCH_XLA, {"training__distribution": "pytorchxla"}, "distribution_unsupported", "warn",
     "benchmark"),
    (TRCOMP, {"candidates": (XLA,)}, "distribution_unsupported", "block", "ineligible"),
    (TENSORFLOW, {"candidates": (XLA,)}, "distribution_unsupported", "block", "ineligible"),
    (SOUND, {"training__distribution": "pytorchxla"}, "distribution_unsupported", "block",
     "ineligible"),
    (SOUND, {"candidates": (dataclasses.replace(COMPILE, distribution="pytorchxla"),)},
     "distribution_unsupported", "block", "ineligible"),
    (SOUND, {"training__distribution": "none"}, "distribution_missing", "warn", "eligible"),
    (PYTORCH_XLA, {}, "script_needs_port", "warn", "benchmark"),
    # shapes
    (SOUND, {"shapes__static": False}, "dynamic_shapes", "warn", "benchmark"),
    (SOUND, {"shapes__padding": "longest"}, "padding_longest", "warn", "benchmark"),
    (SOUND, {"shapes__drop_last": False}, "ragged_last_batch", "info", "eligible"),
    # amortisation
    (SOUND, {"schedule": Schedule(3000, 0.01)}, "run_too_short", "warn", "benchmark"),
    (SOUND, {"schedule": Schedule(3000, 0.002)}, "run_too_short", "block", "ineligible"),
    (TRCOMP, {"schedule": Schedule(300, 0.25)}, "run_too_short", "block", "ineligible"),
    (TRCOMP, {"schedule": Schedule(300, 0.5)}, "run_too_short", "warn", "benchmark"),
    # precision
    (SOUND, {"training__precision": "fp32"}, "fp32_only", "warn", "eligible"),
    (SOUND, {"candidates": (FP8,)}, "precision_unsupported", "block", "ineligible"),
    (SOUND, {"training__instance_type": "ml.g4dn.12xlarge"}, "precision_unsupported", "warn",
     "eligible"),
    # batch and learning rate
    (SOUND, {"candidates": (dataclasses.replace(COMPILE, batch_size=48),)},
     "learning_rate_unscaled", "warn", "eligible"),
    (SOUND, {"candidates": (Candidate(name="p4d", instance_type="ml.p4d.24xlarge",
                                      instance_count=2, learning_rate_scaling="linear"),)},
     "learning_rate_unscaled", "warn", "eligible"),
    (TENSORFLOW, {"model__name": "bert-base-uncased"}, "batch_may_shrink", "warn", "benchmark"),
    # dollars
    (SOUND, {"schedule": Schedule(0.2, 6)}, "saving_below_trial_cost", "block", "ineligible"),
    (SOUND, {"policy__max_trial_usd": 10}, "trial_over_budget", "warn", "eligible"),
    (SOUND, {"training__instance_type": "ml.g6e.48xlarge"}, "price_unknown", "warn", "eligible"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[2]}-{case[3]}")
def test_a_rule_speaks_when_it_should(case: Case) -> None:
    workload, changes, code, severity, verdict = case

    found = check(change(workload, **changes))

    assert severity == severities(found).get(code)
    assert verdict == found.verdict


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[2]}-{case[3]}")
def test_every_reason_names_field_message_fix_and_source(case: Case) -> None:
    workload, changes, *_ = case

    found = check(change(workload, **changes))

    for reason in (*found.reasons, *(r for one in found.candidates for r in one.reasons)):
        assert all((reason.field, reason.message, reason.fix, reason.source))


def test_nothing_speaks_against_a_sound_workload() -> None:
    found = check(SOUND)

    assert {} == severities(found)
    assert "eligible" == found.verdict
    assert () == found.reasons


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"profile": Profile(0.9, 0.05, 0.10)}, "data_bound"),
        ({"profile": Profile(0.3, 0.4, 0.0)}, "low_gpu_utilization"),
        ({"training__instance_type": "ml.g5.2xlarge", "training__distribution": "none"},
         "distribution_missing"),
        ({"candidates": (dataclasses.replace(
            COMPILE, batch_size=48, learning_rate_scaling="linear"),)}, "learning_rate_unscaled"),
        ({"candidates": (FP8,), "training__instance_type": "ml.p5.48xlarge"},
         "precision_unsupported"),
        ({"candidates": (Candidate(name="p4d", instance_type="ml.p4d.24xlarge"),),
          "schedule": Schedule(3000, 0.001)}, "run_too_short"),
        ({"candidates": (Candidate(name="bf16", precision="bf16"),),
          "shapes__static": False}, "dynamic_shapes"),
    ],
)  # fmt: skip
def test_a_rule_keeps_silent_when_it_should(changes: dict[str, Any], code: str) -> None:
    assert code not in severities(check(change(SOUND, **changes)))


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_the_managed_compiler_is_neither_in_china_nor_in_govcloud(region: str) -> None:
    found = check(TENSORFLOW, region=region)

    assert "block" == severities(found)["region_unsupported"]


def test_an_image_that_the_region_lacks_is_a_matter_of_region() -> None:
    found = check(SOUND, region="mars-1")

    assert "block" == severities(found)["region_unsupported"]


def test_a_data_bound_job_hears_its_ceiling_and_what_the_loader_is_worth() -> None:
    (reason,) = check(change(SOUND, profile=Profile(0.9, 0.6, 0.0))).candidates[0].reasons

    assert "1.15 times" in reason.message
    assert "up to 60% of a run's time" in reason.fix


def test_a_field_names_the_candidate_that_changed_it() -> None:
    candidate = Candidate(name="x", instance_type="ml.p3.2xlarge")
    reasons = check(change(SOUND, candidates=(COMPILE, candidate))).candidates[1].reasons

    assert "candidates[1].instance_type" in {reason.field for reason in reasons}


def test_a_mistyped_instance_gets_suggestions() -> None:
    (reason, *_) = (
        check(change(SOUND, training__instance_type="ml.g5.49xlarge")).candidates[0].reasons
    )

    assert "ml.g5.48xlarge" in reason.fix


def test_blocks_come_first() -> None:
    found = check(change(SOUND, training__precision="fp32", profile=Profile(0.9, 0.7, 0.0)))

    assert ["data_bound", "fp32_only"] == list(severities(found))


def test_too_little_history_is_said() -> None:
    (reason,) = check(change(SOUND, quality__history=(0.9,))).reasons

    assert ("history_missing", "info") == (reason.code, reason.severity)


def test_a_noisy_metric_cannot_prove_a_narrow_margin() -> None:
    (reason,) = check(
        change(SOUND, quality__history=(0.70, 0.62, 0.74, 0.66, 0.68), policy__max_quality_runs=12)
    ).reasons

    assert ("underpowered", "quality.margin") == (reason.code, reason.field)
    assert "a margin of 0.0" in reason.message
