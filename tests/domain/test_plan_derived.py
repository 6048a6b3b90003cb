"""Candidates of a workload that names none: what the facts allow, and why not more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.eligibility.check import Eligibility, check_eligibility
from compilegate.domain.planning.plan import Plan, plan_trial
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Profile, Workload
from compilegate.facts import load_facts
from tests.domain.workload_builder import PYTORCH_XLA, SOUND, TENSORFLOW, TRCOMP, XGBOOST, change

FACTS = load_facts()
NONE_NAMED = change(SOUND, candidates=(), policy__max_trial_usd=1e6)


def checked(workload: Workload) -> Eligibility:
    return check_eligibility(workload, FACTS, region="us-east-1")


def names(workload: Workload) -> list[str]:
    return [one.candidate.name for one in checked(workload).candidates]


def left_out(workload: Workload) -> dict[str, str]:
    return dict(checked(workload).left_out)


def with_memory(gib: float, **changes: Any) -> Workload:
    return change(NONE_NAMED, profile=Profile(peak_memory_gib=gib), **changes)


def plan_of(workload: Workload) -> Plan:
    plan = plan_trial(workload, checked(workload).choice, FACTS, region="us-east-1")
    assert isinstance(plan, Plan), plan
    return plan


def test_memory_headroom_adds_a_larger_batch_as_a_bundle_with_the_learning_rate():
    """90 % of 24 GiB over 12 GiB in use: 1.8 times 32, down to a multiple of eight."""
    candidates = checked(with_memory(12.0)).candidates

    assert ["compile", "compile-b56"] == [one.candidate.name for one in candidates]
    assert (56, "linear", "torch_compile") == (
        candidates[1].candidate.batch_size,
        candidates[1].candidate.learning_rate_scaling,
        candidates[1].candidate.compiler,
    )
    assert ["compile", "compile-b64"] == names(with_memory(1.0)), "at most doubled"


@pytest.mark.parametrize(
    ("model", "instance_type", "expected"),
    [
        # 128 samples without the compiler, 192 with it; and 160 without, 128 with.
        ("albert-base-v2", "ml.g5.48xlarge", ["managed-compiler", "managed-compiler-b48"]),
        ("bert-base-uncased", "ml.g5.2xlarge", ["managed-compiler"]),
    ],
)
def test_the_managed_compilers_larger_batch_comes_from_its_tested_models(
    model, instance_type, expected
):
    workload = change(
        TENSORFLOW, candidates=(), model__name=model, policy__max_trial_usd=1e6,
        training__instance_type=instance_type,
    )  # fmt: skip

    assert expected == names(workload)


def test_the_managed_compiler_is_left_out_where_the_job_would_have_to_change_for_it():
    assert "pytorchxla" in left_out(change(PYTORCH_XLA, candidates=()))["managed-compiler"]


@pytest.mark.parametrize(
    ("instance_type", "precision", "expected", "why_not"),
    [
        ("ml.g5.48xlarge", "fp32", ["compile", "bf16"], {}),
        ("ml.g4dn.12xlarge", "fp32", ["compile"], {"bf16": "does not compute bf16"}),
        ("ml.p5.48xlarge", "bf16", ["compile", "fp8"], {}),
        ("ml.g5.48xlarge", "bf16", ["compile"], {"fp8": "has no fp8"}),
        ("ml.p5.48xlarge", "fp8", ["compile"], {}),
    ],
)
def test_precisions_follow_the_gpu(instance_type, precision, expected, why_not):
    workload = change(
        NONE_NAMED, training__instance_type=instance_type, training__precision=precision
    )
    left = left_out(workload)
    vision = change(workload, model__family="vision")
    assert "fp8" not in names(vision)

    assert expected == names(workload)
    for name, why in why_not.items():
        assert why in left[name]


@pytest.mark.parametrize("workload", [TRCOMP, TENSORFLOW], ids=["hugging face", "tensorflow"])
def test_the_managed_compiler_is_derived_where_the_job_runs_unchanged(workload):
    workload = change(workload, candidates=(), policy__max_trial_usd=1e6)

    assert "managed-compiler" == names(workload)[0]
    assert "compile" in left_out(workload)


def test_what_would_exceed_the_cap_is_left_out_and_says_so():
    fits = with_memory(12.0, policy__max_trial_usd=1e6)
    one, both = (plan_of(change(NONE_NAMED)), plan_of(fits))
    between = (one.estimate.usd + both.estimate.usd) / 2
    capped = with_memory(12.0, policy__max_trial_usd=between)

    assert ["compile"] == names(capped)
    assert "policy.max_trial_usd" in left_out(capped)["compile-b56"]


WORKLOADS = st.builds(
    lambda base, instance, count, precision, batch, memory, usd, hours: change(
        base, candidates=(), training__instance_type=instance, training__instance_count=count,
        training__precision=precision, training__batch_size=batch, policy__max_trial_usd=usd,
        schedule__run_hours=hours,
        profile=Profile(peak_memory_gib=memory),
    ),
    st.sampled_from([SOUND, PYTORCH_XLA, TRCOMP, TENSORFLOW, XGBOOST]),
    st.sampled_from(["ml.g5.xlarge", "ml.g5.48xlarge", "ml.g4dn.12xlarge", "ml.p4d.24xlarge",
                     "ml.p5.48xlarge", "ml.m6i.12xlarge"]),
    st.integers(1, 4),
    st.sampled_from(["fp32", "tf32", "fp16", "bf16"]),
    st.integers(1, 300),
    st.none() | st.floats(0.5, 80),
    st.floats(1, 1e5),
    st.floats(0.01, 50),
)  # fmt: skip


@given(WORKLOADS)
def test_every_derived_arm_is_eligible_or_alone_and_planned_as_it_was_checked(workload):
    eligibility = checked(workload)
    candidates = [one.candidate for one in eligibility.candidates]
    verdicts = [str(one.verdict) for one in eligibility.candidates]

    assert 1 <= len(candidates) <= 3
    assert len(verdicts) == 1 or "ineligible" not in verdicts
    assert all(one.why for one in eligibility.candidates)
    assert all(why for _, why in eligibility.left_out)
    assert not {name for name, _ in eligibility.left_out} & set(eligibility.choice.why)
    assert [] == [one for one in candidates if candidates.count(one) > 1]

    plan = plan_trial(workload, eligibility.choice, FACTS, region="us-east-1")
    if isinstance(plan, Reason):
        return
    arms = [arm for arm in plan.arms if arm.role == "candidate"]
    assert [one.name for one in candidates] == [arm.name for arm in arms]
    assert eligibility.economics.trial_usd == plan.estimate.usd
    assert plan.estimate.low_usd <= plan.estimate.usd <= plan.estimate.high_usd
    assert plan.estimate.high_usd <= plan.max_trial_usd
    for arm in arms:
        assert ("bundle" in arm.label) == (len(arm.factors) > 1)
        assert eligibility.choice.why[arm.name] == arm.why
