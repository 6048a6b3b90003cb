"""What single reasons say: the figure, the name, the field and the way out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import (
    Candidate,
    FactOverrides,
    Framework,
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

P3 = Candidate(name="x", instance_type="ml.p3.2xlarge")
LARGER = replace(COMPILE, batch_size=64, learning_rate_scaling="linear")
AGAIN = replace(COMPILE, name="again", compile_mode="max-autotune")
DDP, SMDDP = (Candidate(name=name, distribution=name) for name in ("pytorchddp", "smddp"))
PARALLEL = change(
    SOUND, framework=Framework("pytorch", "2.1.0"), training__instance_type="ml.p4d.24xlarge"
)
NOISY = (0.70, 0.62, 0.74, 0.66, 0.68)
OLDER_TENSORFLOW = Framework("tensorflow", "2.9.2", None, "py39")


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
    ("speedup_below_policy", change(SOUND, policy__min_mean_speedup=2.0), "(2.00)", "1.50"),
    ("fp32_only", change(SOUND, training__precision="fp32"), "51% in it, 21% in fp32 on an A100",
     "bf16"),
    # Amdahl on the published 1.5 to 5.5 times, with 20 % of a step waiting.
    ("fp32_only", change(SOUND, training__precision="fp32", profile=Profile(
        data_wait_fraction=0.2)), "1.4 to 2.9 times", "bf16"),
    ("instance_unsupported", change(SOUND, training__instance_type="ml.g5.49xlarge"), "49xlarge",
     "ml.g5.48xlarge"),
    ("not_gpu", change(SOUND, training__instance_type="ml.m6i.12xlarge"), "ml.m6i",
     "ml.g4dn.xlarge"),
    ("not_gpu", XGBOOST, "xgboost", "LightGBM"),
    ("underpowered", change(SOUND, quality__history=NOISY, policy__max_quality_runs=12),
     "a margin of 0.0", "quality.margin"),
    ("trial_over_budget", change(with_candidates(COMPILE, AGAIN), policy__max_trial_usd=10),
     "$10.00", "(again alone: $"),
    ("framework_downgrade", with_candidates(PAIR), "pytorch 1.13.1", "control managed-native"),
    ("framework_change", change(with_candidates(replace(MANAGED, framework=TENSORFLOW.framework),
     base=TENSORFLOW), framework=OLDER_TENSORFLOW), "2.9.2", "control managed-native"),
    ("memory_headroom", change(with_candidates(LARGER), profile=Profile(peak_memory_gib=16.0)),
     "up to 32 GiB", "up to 48"),
    # 160 without the compiler, 128 with it.
    ("batch_may_shrink", change(TENSORFLOW, model__name="bert-base-uncased",
                                training__batch_size=160), "128", "batch_size: 128"),
    ("no_compiler_image", change(SOUND, framework=Framework("tensorflow", "2.11.1")),
     "2.10.1 (py39), 2.11.0 (py39), 2.12.0 (py310)", "facts.images"),
    ("run_too_short", change(SOUND, schedule=Schedule(3000, 0.2)), "longer than 15 min",
     "profile.compile_seconds"),
    ("same_job", with_candidates(DDP, SMDDP, base=PARALLEL), "same job as pytorchddp", ""),
]  # fmt: skip


@pytest.mark.parametrize(("code", "workload", "message", "fix"), SAYS, ids=[row[0] for row in SAYS])
def test_a_reason_gives_its_figures_and_names(code, workload, message, fix):
    reason = reason_of(workload, code)

    assert message in reason.message
    assert fix in reason.fix


@pytest.mark.parametrize(
    ("code", "workload", "field"),
    [
        ("instance_retired", with_candidates(COMPILE, P3), "candidates[1].instance_type"),
        ("same_job", with_candidates(DDP, SMDDP, base=PARALLEL), "candidates[1]"),
        ("speedup_below_policy", change(with_profile(0.9, 0.01, 0.0), policy__min_mean_speedup=1.5),
         "policy.min_mean_speedup"),
        ("underpowered", change(SOUND, quality__history=NOISY, policy__max_quality_runs=12),
         "quality.margin"),
        ("history_missing", change(SOUND, quality__history=(0.9,)), "quality.history"),
        ("image_unpatched", with_candidates(MANAGED), "candidates[0].compiler"),
    ],
)  # fmt: skip
def test_a_reason_names_the_field_to_change(code, workload, field):
    assert field == reason_of(workload, code).field


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        # The most severe first.
        (change(SOUND, training__precision="fp32", profile=Profile(0.9, 0.7, 0.0)),
         ["data_bound", "fp32_only"]),
        (with_profile(0.15, 0.3, 0.0), ["data_bound", "low_gpu_utilization"]),
        (with_profile(0.6, 0.4, 0.0), ["data_bound"]),
        (with_candidates(replace(PAIR, entry_point="xla.py")),
         ["image_unpatched", "framework_downgrade"]),
        # A version written more loosely is not another version.
        (with_candidates(replace(XLA, framework=Framework("pytorch", "1.13")), base=PYTORCH_XLA),
         ["image_unpatched", "script_needs_port"]),
        (with_candidates(replace(MANAGED, framework=TENSORFLOW.framework, distribution="none",
                                 entry_point="tf.py")), ["image_unpatched", "framework_change"]),
        (with_candidates(MANAGED, base=XGBOOST), ["framework_unsupported", "image_unpatched"]),
    ],
    ids=["order", "idle-unexplained", "idle-explained", "ported", "loose", "other-kind", "trees"],
)  # fmt: skip
def test_a_candidate_gets_exactly_these_reasons(workload, expected):
    assert expected == list(severities(check(workload)))


def test_no_control_is_announced_whose_name_another_candidate_has():
    taken = replace(COMPILE, name="managed-native")
    first = check(with_candidates(PAIR, taken)).candidates[0].reasons
    (reason,) = (reason for reason in first if reason.code == "framework_downgrade")

    assert "managed-native" not in reason.fix


def test_a_candidate_that_cannot_run_does_not_make_its_twin_ineligible():
    workload = change(SOUND, framework=Framework("pytorch", "2.1.0"), candidates=(SMDDP, DDP))

    assert ["ineligible", "eligible"] == [one.verdict for one in check(workload).candidates]


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
