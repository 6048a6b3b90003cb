"""The managed compiler's matrix, and what SDK and documentation accept that does not work."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from compilegate.domain.workload.model import Candidate, Framework, InstanceGroup, Workload
from compilegate.facts import load_facts, read
from tests.domain.workload_builder import (
    ARTICLE,
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

HF_TENSORFLOW = Framework("huggingface-tensorflow", "2.6.3", "4.21.1", "py38")
HF_XLA = change(
    TRCOMP, framework=Framework("huggingface-pytorch", "2.1.0", "4.36.0"),
    training__instance_type="ml.g5.48xlarge", training__distribution="torch_distributed",
)  # fmt: skip


def on(framework: Framework, **changes: Any) -> tuple[Candidate, ...]:
    """The managed compiler under pytorchxla on these versions."""
    return (dataclasses.replace(XLA, framework=framework, **changes),)


def switched(workload: Workload, key: str, value: object) -> Workload:
    return change(workload, training__hyperparameters={key: value})


# What stands in the way of a matrix row on one GPU in us-east-1, if anything.
OBSTACLES = {
    ("huggingface-pytorch", "1.11.0"): {"no_compiler_image"},
    ("tensorflow", "2.9.1"): {"version_unsupported"},
    ("tensorflow", "2.10.0"): {"version_unsupported"},
}
OLD = Framework("pytorch", "1.13.1", None, "py39")
# Words of the row in facts/sdk_gaps.json, workload, region, the reason that blocks it.
GAPS: list[tuple[str, Workload, str, str]] = [
    ("TensorFlow has no upper bound", change(TENSORFLOW, framework=Framework(
        "tensorflow", "2.12.0")), "us-east-1", "version_unsupported"),
    ("PyTorch estimator has no upper bound", change(SOUND, candidates=(XLA,)), "us-east-1",
     "version_unsupported"),
    ("'enabled': False", switched(
        PYTORCH_XLA, "sagemaker_pytorch_xla_multi_worker_enabled", False), "us-east-1",
     "distribution_missing"),
    ("several instances without a distribution", change(
        PYTORCH_XLA, candidates=(MANAGED,), training__distribution="none",
        training__instance_type="ml.g5.2xlarge", training__instance_count=2), "us-east-1",
     "distribution_missing"),
    ("TrainingCompilerConfig(enabled=False)", switched(
        TRCOMP, "sagemaker_training_compiler_enabled", "false"), "us-east-1", "compiler_disabled"),
    ("'local_gpu' passes", change(TRCOMP, training__instance_type="local_gpu"), "us-east-1",
     "instance_unsupported"),
    ("py_version='py3' is rejected", change(
        PYTORCH_XLA, framework=Framework("pytorch", "1.13.1", None, "py3")), "us-east-1",
     "version_unsupported"),
    ("Transformers 4.21.1 with TensorFlow 2.6.3", change(TENSORFLOW, framework=HF_TENSORFLOW),
     "us-east-1", "version_unsupported"),
    ("TensorFlow 2.9.1 and 2.10.0", change(TENSORFLOW, framework=Framework(
        "tensorflow", "2.10.0")), "us-east-1", "version_unsupported"),
    ("China: TensorFlow images resolve", TENSORFLOW, "cn-north-1", "region_unsupported"),
    ("ml.p3.2xlarge, 8xlarge and 16xlarge", change(SOUND, candidates=on(
        OLD, instance_type="ml.p3.16xlarge")), "us-east-1", "instance_retired"),
    ("smdistributed, data or model parallel", change(PYTORCH_XLA, candidates=(
        dataclasses.replace(MANAGED, distribution="smddp"),)), "us-east-1",
     "distribution_unsupported"),
    ("instance_groups, a heterogeneous cluster", change(TRCOMP, training__instance_groups=(
        InstanceGroup("gpu", "ml.g5.xlarge", 1), InstanceGroup("cpu", "ml.m5.xlarge", 1))),
     "us-east-1", "heterogeneous_cluster"),
    ("local mode", change(TRCOMP, training__instance_type="local"), "us-east-1",
     "instance_unsupported"),
    ("pytorchxla for Hugging Face TensorFlow", change(TENSORFLOW, framework=Framework(
        "huggingface-tensorflow", "2.6.3", "4.17.0"), candidates=(XLA,)), "us-east-1",
     "distribution_unsupported"),
    ("pytorchxla for Hugging Face TensorFlow", change(TRCOMP, candidates=(XLA,)), "us-east-1",
     "distribution_unsupported"),
    ("any distribution but pytorchxla", change(PYTORCH_XLA, candidates=(
        dataclasses.replace(MANAGED, distribution="pytorchddp"),)), "us-east-1",
     "distribution_unsupported"),
    ("pytorchxla without compiler_config", change(SOUND, candidates=(
        Candidate(name="xla", distribution="pytorchxla"),)),
     "us-east-1", "distribution_unsupported"),
    *(("instance families other than", change(PYTORCH_XLA, training__instance_type=kind),
       "us-east-1", "instance_unsupported")
      for kind in ("ml.p4de.24xlarge", "ml.p5.48xlarge", "ml.g6.48xlarge", "ml.p2.8xlarge")),
    ("Hugging Face PyTorch outside 1.9 to 1.11", change(HF_XLA, candidates=on(Framework(
        "huggingface-pytorch", "1.13.1", "4.26.0"))), "us-east-1", "version_unsupported"),
    ("data parallel on instance types other than", change(SOUND, candidates=(
        Candidate(name="smddp", distribution="smddp"),), framework=Framework("pytorch", "2.1.0")),
     "us-east-1", "distribution_unsupported"),
    ("data parallel with PyTorch above 2.2.0", change(
        SOUND, training__instance_type="ml.p4d.24xlarge",
        candidates=(Candidate(name="smddp", distribution="smddp"),)), "us-east-1",
     "distribution_unsupported"),
]  # fmt: skip
# Rows that no workload file can express, and why.
NOT_EXPRESSIBLE = {
    "distribution={'torchxla'": "the parser knows pytorchxla only (tested below)",
    "an own image_uri": "a request by hand may name any image, so facts.images is allowed",
    "multi_worker_mirrored_strategy": "no distribution of that name (tested below)",
    "with a version cut short": "2.1 is read as the newest 2.1.x",
}
MORE: list[tuple[Workload, str, str]] = [
    (change(PYTORCH_XLA, candidates=(dataclasses.replace(XLA, hyperparameters={
        "sagemaker_training_compiler_debug_mode": "true"}),)), "us-east-1", "compiler_debug"),
    (change(PYTORCH_XLA, framework__python="py310"), "us-east-1", "version_unsupported"),
    (TENSORFLOW, "us-gov-west-1", "region_unsupported"),
    (change(TENSORFLOW, candidates=on(OLD)), "us-east-1", "framework_unsupported"),
    (change(TRCOMP, framework=Framework("huggingface-pytorch", "1.9.0", "4.11.0")), "eu-west-3",
     "region_unsupported"),
    (ARTICLE, "us-east-1", "version_unsupported"),
    (ARTICLE, "us-east-1", "distribution_unsupported"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("workload", "region", "code"), [*(gap[1:] for gap in GAPS), *MORE],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_sdk_and_documentation_get_wrong_is_blocked(workload, region, code):
    eligibility = check(workload, region=region)

    assert "block" == severities(eligibility).get(code)
    assert "ineligible" == eligibility.candidates[0].verdict


def test_every_gap_on_file_has_its_check():
    words = [*(gap[0] for gap in GAPS), *NOT_EXPRESSIBLE]
    rows = [row["text"] for row in read("sdk_gaps")["rows"]]

    assert [] == [text for text in rows if not any(word in text for word in words)]
    assert [] == [word for word in words if not any(word in text for text in rows)]


@pytest.mark.parametrize(
    "row", load_facts().managed.images, ids=lambda row: f"{row.framework}-{row.version}"
)
def test_a_row_of_the_matrix_may_be_tried_where_it_has_a_baseline(row):
    framework = Framework(row.framework, row.version, row.transformers, row.python)
    codes = severities(check(change(TRCOMP, framework=framework)))
    blocks = {code for code, severity in codes.items() if severity == "block"}

    assert OBSTACLES.get((row.framework, row.version), set()) == blocks
    assert "image_unpatched" in codes
