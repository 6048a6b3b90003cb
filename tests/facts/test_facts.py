"""The fact files: complete, dated, sourced, and looked up without guessing."""

from __future__ import annotations

import importlib
import re

import pytest

from compilegate.domain.codec import write
from compilegate.domain.facts import Facts
from compilegate.domain.faults import FaultTable
from compilegate.domain.fields import Fields
from compilegate.domain.workload.model import Framework
from compilegate.facts import FOLDER, load_facts, read

MANAGED_COMPILER = "sagemaker_training_compiler"
FILES = sorted({file.stem for file in FOLDER.glob("*.json")} - {"create_training_job", "refreshed"})
DATE = re.compile(r"20\d\d-\d\d-\d\d")
LISTS = (
    "images", "versions", "instances", "prices", "lower_precision", "rows",
)  # fmt: skip


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


@pytest.mark.parametrize("name", FILES)
def test_every_fact_file_and_row_says_how_old_it_is_and_where_from(name):
    document = read(name)
    rows = [row for key in LISTS for row in document.get(key, [])]

    assert DATE.fullmatch(document["as_of"])
    assert document["source_kind"]
    assert [] == [row for row in rows if not (row.get("source") or row.get("basis"))]
    assert rows or document["source"]


def test_the_table_of_faults_is_of_the_equivalence_check_that_jobs_run(
    monkeypatch,
):
    monkeypatch.syspath_prepend(str(FOLDER.parents[1] / "training"))
    digest = importlib.import_module("compilegate_runtime.equivalence").digest
    table = load_facts().faults

    # Read as evidence is.
    assert not table.classes or digest() == Fields(write(table)).read(FaultTable).check
    assert all("gradients.single" in table.bounds_of(one) for one in table.classes)


@pytest.mark.parametrize(
    ("framework", "compiler", "image"),
    [
        (Framework("huggingface-pytorch", "2.1", "4.36"), "torch_compile",
         "huggingface-pytorch-training:2.1.0-transformers4.36.0-gpu-py310-cu121-ubuntu20.04"),
        (Framework("pytorch", "2.13.0"), "torch_compile",
         "pytorch:2.13.0-cu133-amzn2023-sagemaker"),
        (Framework("pytorch", "1.13.1", None, "py39"), MANAGED_COMPILER,
         "pytorch-trcomp-training:1.13.1-gpu-py39"),
        (Framework("tensorflow", "2.9.1"), "none",
         "tensorflow-training:2.9.1-gpu-py39-cu112-ubuntu20.04-sagemaker"),
    ],
    ids=["loosely written", "newer than the SDK", "with the compiler", "unknown to the SDK"],
)  # fmt: skip
def test_an_image_is_that_of_its_versions_and_compiler(facts, framework, compiler, image):
    """The SDK's own images in their regions are compared in tests/conformance."""
    uri = facts.image(framework, compiler=compiler, region="us-east-1").uri

    assert f"763104351884.dkr.ecr.us-east-1.amazonaws.com/{image}" == uri


def test_a_cpu_instance_gets_the_cpu_variant_or_none(facts):
    cpu = facts.instance("ml.m5.xlarge")
    pytorch, hugging_face = Framework("pytorch", "2.8.0"), Framework("huggingface-pytorch", "2.8.0")

    plain = facts.image(pytorch, compiler="none", region="us-east-1", instance=cpu)
    missing = facts.image(hugging_face, compiler="none", region="us-east-1", instance=cpu)

    assert plain.uri.endswith("pytorch-training:2.8.0-cpu-py312")
    assert ("", "no_compiler_image") == (missing.uri, missing.code)
    assert "no CPU variant" in missing.why


@pytest.mark.parametrize(
    ("framework", "compiler", "region", "expected"),
    [
        (Framework("pytorch", "2.99"), "none", "us-east-1", ("no_compiler_image", "2.13.0")),
        (Framework("pytorch", "2.1.0", None, "py39"), "none", "us-east-1",
         ("no_compiler_image", "(py310)")),
        (Framework("sklearn", "1.4"), "none", "us-east-1", ("no_compiler_image", "no GPU variant")),
        (Framework("pytorch", "2.8.0"), "none", "mars-1", ("region_unsupported", "mars-1")),
        (Framework("pytorch", "2.8.0"), MANAGED_COMPILER, "us-east-1",
         ("no_compiler_image", "the managed compiler")),
        (Framework("tensorflow", "2.11.0"), MANAGED_COMPILER, "cn-north-1",
         ("region_unsupported", "cn-north-1")),
        (Framework("pytorch", "1.13.1"), MANAGED_COMPILER, "us-gov-west-1",
         ("region_unsupported", "us-gov-west-1")),
    ],
)  # fmt: skip
def test_no_image_comes_with_the_reason(facts, framework, compiler, region, expected):
    image = facts.image(framework, compiler=compiler, region=region)

    assert ("", expected[0]) == (image.uri, image.code)
    assert expected[1] in image.why


def test_a_price_has_the_date_of_its_source_if_there_is_one(facts):
    dated, undated = facts.price("ml.g5.48xlarge"), facts.price("ml.g4dn.12xlarge")

    assert (20.36, "2026-09-01") == (dated.usd_per_hour, dated.as_of)
    assert undated.as_of is None


def test_every_price_names_where_it_can_be_looked_up_or_what_it_follows_from():
    # A repository or an address, two or three words between slashes and dots.
    nameable = re.compile(r"[\w-]+/[\w.-]+ [\w./-]+|inferred from|= 1\.2 x EC2")

    sources = {row["instance_type"]: row["source"] for row in read("prices")["prices"]}

    assert [] == [kind for kind, source in sources.items() if not nameable.search(source)]


def test_an_instance_or_price_that_is_not_on_file_is_none(facts):
    assert (None, None) == (facts.instance("ml.nothing.xlarge"), facts.price("ml.g6e.48xlarge"))


def test_every_registry_named_by_an_image_exists(facts):
    registries = {row.registry for row in (*facts.images, *facts.managed.images)}

    assert set() == registries - set(facts.registries)


def test_tested_models_are_looked_up_by_exact_combination(facts):
    rows = facts.tested(Framework("pytorch", "1.13.1"), "bert-base-uncased", "ml.g5.48xlarge")

    assert [(50 / 29, 29, 50)] == [
        (ratio, row.native_batch, row.compiled_batch)
        for row, ratio in rows
        if row.sequence_length == 512
    ]
    assert [] == facts.tested(Framework("pytorch", "2.1.0"), "bert-base-uncased", "ml.g5.48xlarge")
