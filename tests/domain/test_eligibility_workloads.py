"""The workloads that are shipped, and every row of the managed compiler's matrix."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Framework
from compilegate.facts import load_facts
from tests.domain.workload_builder import TRCOMP, change, check, severities

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"
SHIPPED = {
    "article-bert": "eligible",
    "article-diffusion": "benchmark",
    "article-gpt2": "benchmark",
    "article-gpt2-sst2": "eligible",
    "article-xgboost": "ineligible",
    "demo-classifier": "benchmark",
    "demo-lm": "benchmark",
    "demo-tabular": "ineligible",
    "nightly-lm": "benchmark",
}
# What stands in the way of a matrix row on one GPU in us-east-1, if anything.
OBSTACLES = {
    ("huggingface-pytorch", "1.11.0"): {"no_compiler_image"},
    ("tensorflow", "2.9.1"): {"version_unsupported"},
    ("tensorflow", "2.10.0"): {"version_unsupported"},
}


def test_every_shipped_workload_has_its_verdict_here() -> None:
    assert set(SHIPPED) == {file.stem for file in WORKLOADS.glob("*.yaml")}


@pytest.mark.parametrize(("name", "verdict"), SHIPPED.items())
def test_a_shipped_workload_gets_the_verdict_that_its_story_tells(name: str, verdict: str) -> None:
    document = yaml.safe_load((WORKLOADS / f"{name}.yaml").read_text(encoding="utf-8"))

    assert verdict == check(parse_workload(document)).verdict


@pytest.mark.parametrize(
    "row", load_facts().managed.images, ids=lambda row: f"{row.framework}-{row.version}"
)
def test_a_row_of_the_matrix_may_be_tried_where_it_has_a_baseline(row: CompilerImage) -> None:
    framework = Framework(row.framework, row.version, row.transformers, row.python)
    said = severities(check(change(TRCOMP, framework=framework)))
    blocks = {code for code, severity in said.items() if severity == "block"}

    assert OBSTACLES.get((row.framework, row.version), set()) == blocks
    assert "image_unpatched" in said


@pytest.mark.parametrize(
    "region", ["cn-north-1", "us-gov-west-1", "us-gov-east-1", "us-iso-east-1"]
)
@pytest.mark.parametrize(
    "row", load_facts().managed.images, ids=lambda row: f"{row.framework}-{row.version}"
)
def test_no_row_of_the_matrix_runs_outside_the_commercial_regions(
    row: CompilerImage, region: str
) -> None:
    framework = Framework(row.framework, row.version, row.transformers, row.python)

    assert "ineligible" == check(change(TRCOMP, framework=framework), region=region).verdict
