"""What the reasons say: the number, the name, the field and the way out."""

from __future__ import annotations

import dataclasses
import re

import pytest

from compilegate.domain.eligibility import check_eligibility
from compilegate.domain.workload.model import (
    Candidate,
    FactOverrides,
    Framework,
    OwnImage,
    Profile,
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


def test_an_idle_gpu_hears_its_ceiling_if_nothing_else_changes() -> None:
    (reason,) = check(change(SOUND, profile=Profile(gpu_utilization=0.3))).candidates[0].reasons

    # By Amdahl: one over 0.7 + 0.3 / 1.5.
    assert "1.11 times as fast" in reason.message
    assert "at most" not in reason.message


def test_a_full_precision_job_hears_on_which_gpu_each_figure_was_measured() -> None:
    (reason,) = check(change(SOUND, training__precision="fp32")).candidates[0].reasons

    assert "on V100" in reason.message
    assert "51% in it, 21% in fp32 on an A100" in reason.message


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
    assert "could prove a margin of 0.0" in reason.message
    assert "widen quality.margin" in reason.fix


def test_a_trial_above_the_cap_names_the_candidate_that_is_cheaper_alone() -> None:
    two = (COMPILE, dataclasses.replace(COMPILE, name="again", compile_mode="max-autotune"))
    (reason,) = check(change(SOUND, candidates=two, policy__max_trial_usd=10)).reasons

    assert ("trial_over_budget", "warn") == (reason.code, reason.severity)
    assert "name fewer candidates (again alone: $" in reason.fix


def test_a_ported_script_of_its_own_needs_no_port() -> None:
    found = check(change(SOUND, candidates=(dataclasses.replace(PAIR, entry_point="xla.py"),)))

    assert {"image_unpatched": "warn", "framework_downgrade": "info"} == severities(found)


def test_the_control_that_measures_a_step_back_is_named() -> None:
    (fix,) = [r.fix for r in check(change(SOUND, candidates=(PAIR,))).candidates[0].reasons
              if r.code == "framework_downgrade"]  # fmt: skip

    assert "managed-native" in fix


def test_an_own_image_of_the_same_versions_is_a_baseline() -> None:
    framework = Framework("huggingface-pytorch", "1.11.0", "4.21.1", "py38")
    uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/hf:1"
    own = FactOverrides(images=(OwnImage("huggingface-pytorch", "1.11.0", uri, "4.21.1", "py38"),))
    found = check_eligibility(change(TRCOMP, framework=framework), load_facts().overridden(own))

    assert {"image_unpatched": "warn"} == severities(found)


def test_an_own_image_with_the_managed_compiler_is_taken_at_its_word() -> None:
    uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/trcomp:1"
    own = FactOverrides(images=(
        OwnImage("pytorch", "2.13.0", uri, compiler="sagemaker_training_compiler"),
    ))  # fmt: skip
    found = check_eligibility(
        change(SOUND, candidates=(dataclasses.replace(MANAGED, distribution="pytorchxla"),)),
        load_facts().overridden(own),
    )

    assert {"image_unpatched": "warn"} == severities(found)


def test_an_fp32_job_hears_what_a_lower_precision_gained_elsewhere() -> None:
    fp32 = change(SOUND, training__precision="fp32", profile=Profile(data_wait_fraction=0.2))
    (reason,) = check(fp32).candidates[0].reasons

    # Amdahl on the published 1.5 to 5.5 times, with 20 % of a step waiting.
    assert (
        "1.4 to 2.9 times as fast by bf16 alone, with the 20% that a step waits" in reason.message
    )
    assert "on V100, so low confidence for NVIDIA A10G" in reason.message
    assert "pytorch.org" in reason.source


def test_the_frozen_state_is_said_even_where_there_is_nothing_to_compile() -> None:
    found = check(change(XGBOOST, candidates=(MANAGED,)))

    assert "warn" == severities(found)["image_unpatched"]


def test_memory_names_the_batch_that_fits_for_sure() -> None:
    larger = dataclasses.replace(COMPILE, batch_size=64, learning_rate_scaling="linear")
    found = check(change(SOUND, profile=Profile(peak_memory_gib=16.0), candidates=(larger,)))
    (reason,) = [r for r in found.candidates[0].reasons if r.code == "memory_headroom"]

    assert "up to 32 GiB" in reason.message
    assert "batch_size up to 48" in reason.fix


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (change(SOUND, candidates=(PAIR,)), {"torch_compile"}),
        (PYTORCH_XLA, {"torch_compile on PyTorch 2"}),
        (TENSORFLOW, set()),
        (change(TENSORFLOW, training__instance_count=2, training__batch_size=160), set()),
        (change(XGBOOST, candidates=(MANAGED,)), set()),
    ],
)
@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1"])
def test_torch_compile_is_advised_only_to_those_who_can_have_it(
    workload: Workload, said: set[str], region: str
) -> None:
    reasons = check(workload, region=region).candidates[0].reasons
    fixes = " ".join(reason.fix for reason in reasons)

    found = set(re.findall(r"torch_compile(?: on PyTorch 2)?", fixes))

    assert said == found


def test_a_batch_that_the_compiled_model_did_not_fit_is_told_the_largest_that_did() -> None:
    bert = change(
        TENSORFLOW, model__name="bert-base-uncased", training__batch_size=160
    )  # 160 without the compiler, 128 with it
    (reason,) = (r for r in check(bert).candidates[0].reasons if r.code == "batch_may_shrink")

    assert "batch_size: 128" in reason.fix


def test_an_idle_gpu_is_told_beside_a_slow_loader_that_explains_little_of_it() -> None:
    half = change(SOUND, profile=Profile(0.15, 0.3, 0.0))
    explained = change(SOUND, profile=Profile(0.6, 0.4, 0.0))

    assert {"data_bound": "warn", "low_gpu_utilization": "warn"} == severities(check(half))
    assert {"data_bound": "warn"} == severities(check(explained))


def test_a_small_wait_is_not_blamed_for_a_promotion_out_of_reach() -> None:
    strict = change(SOUND, profile=Profile(0.9, 0.01, 0.0), policy__promote_speedup=1.5)
    (reason,) = check(strict).candidates[0].reasons

    assert ("block", "policy.promote_speedup") == (reason.severity, reason.field)
    assert "loader" not in reason.fix


def test_fp8_under_the_managed_compiler_is_not_sent_to_machines_that_it_refuses() -> None:
    asked = dataclasses.replace(XLA, precision="fp8")
    found = check(change(PYTORCH_XLA, candidates=(asked,))).candidates[0].reasons
    (reason,) = (r for r in found if r.code == "precision_unsupported")

    assert "images predate fp8" in reason.message


def test_a_priced_type_without_geometry_is_not_called_unpriced() -> None:
    found = check(change(SOUND, training__instance_type="ml.m5.12xlarge")).candidates[0].reasons
    (reason,) = (r for r in found if r.code == "instance_unsupported")

    assert "price" not in reason.message


def test_the_smallest_gpu_instance_is_named_to_those_without_one() -> None:
    found = check(change(SOUND, training__instance_type="ml.m6i.12xlarge")).candidates[0].reasons
    (reason,) = (r for r in found if r.code == "not_gpu")

    assert "ml.g4dn.xlarge" in reason.fix


def test_versions_left_out_are_no_other_version() -> None:
    loosely = dataclasses.replace(XLA, framework=Framework("pytorch", "1.13"))
    codes = severities(check(change(PYTORCH_XLA, candidates=(loosely,))))

    assert not {"framework_change", "framework_downgrade"} & codes.keys()


def test_another_kind_of_framework_is_told_as_a_change() -> None:
    other = dataclasses.replace(
        MANAGED, framework=TENSORFLOW.framework, distribution="none", entry_point="tf.py"
    )
    codes = severities(check(change(SOUND, candidates=(other,))))

    assert "info" == codes["framework_change"]


def test_no_control_is_promised_that_another_candidate_takes_the_name_of() -> None:
    taken = dataclasses.replace(COMPILE, name="managed-native")
    found = check(change(SOUND, candidates=(PAIR, taken))).candidates[0].reasons
    (reason,) = (r for r in found if r.code == "framework_downgrade")

    assert "managed-native" not in reason.fix


def test_a_version_without_an_image_is_told_its_neighbours() -> None:
    older = change(SOUND, framework=Framework("tensorflow", "2.11.1"))
    found = check(older).candidates[0].reasons
    (reason,) = (r for r in found if r.code == "no_compiler_image")

    assert "2.10.1 (py39), 2.11.0 (py39), 2.12.0 (py310)" in reason.message


def test_a_newer_framework_for_the_compiler_is_told_its_control_too() -> None:
    newer = dataclasses.replace(MANAGED, framework=TENSORFLOW.framework)
    older = Framework("tensorflow", "2.9.2", None, "py39")
    found = check(change(TENSORFLOW, framework=older, candidates=(newer,))).candidates[0].reasons
    (reason,) = (r for r in found if r.code == "framework_change")

    assert "control managed-native" in reason.fix
