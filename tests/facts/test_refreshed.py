"""refreshed.json: over the shipped facts of its region, of no other, and broken never silently."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload.model import Framework
from compilegate.facts import laid_over, load_facts, read_refreshed
from compilegate_facts.refresh import merged

REGION = "us-east-1"
SHIPPED = load_facts()
PRICE = {
    "instance_type": "ml.g5.xlarge", "usd_per_hour": 1.5, "confidence": "list", "region": REGION,
    "as_of": "2026-11-19", "source": "AWS Price List API",
}  # fmt: skip
QUOTA = {
    "instance_type": "ml.g5.xlarge", "spot": False, "instances": 4, "as_of": "2026-11-21",
    "source": "Service Quotas",
}  # fmt: skip
FRAMEWORK = Framework("pytorch", "2.8.0")
URI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"
ABSENT = {
    "uri": URI, "found": False, "pushed_at": None, "digest": None, "as_of": "2026-11-21",
    "source": "ECR DescribeImages",
}  # fmt: skip
PARTS: dict[str, list[dict[str, Any]]] = {"prices": [PRICE], "quotas": [QUOTA], "images": [ABSENT]}


def refreshed(**parts: list[dict[str, Any]]) -> dict[str, Any]:
    return merged({}, REGION, parts or PARTS)


def test_the_file_is_absent_before_the_first_refresh(tmp_path):
    assert {} == read_refreshed(tmp_path / "refreshed.json")


def test_a_read_price_a_quota_and_an_absent_image_hold_in_their_region():
    facts = laid_over(SHIPPED, refreshed(), REGION)

    price = facts.price("ml.g5.xlarge")
    image = facts.image(FRAMEWORK, compiler="none", region=REGION)

    assert (1.5, "list") == (price.usd_per_hour, price.confidence)
    assert SHIPPED.quota("ml.g5.xlarge") is None
    assert (4, None) == (facts.quota("ml.g5.xlarge"), facts.quota("ml.g5.xlarge", spot=True))
    assert ("", "no_compiler_image") == (image.uri, image.code)
    assert "was not in its registry on 2026-11-21" in image.why
    assert SHIPPED.price("ml.p4d.24xlarge") == facts.price("ml.p4d.24xlarge")


def test_another_region_keeps_its_facts():
    assert SHIPPED is laid_over(SHIPPED, refreshed(), "eu-west-1")


def test_a_part_that_was_not_read_again_stays():
    cheaper = [{**PRICE, "usd_per_hour": 1.2}]

    document = merged(refreshed(), REGION, {"prices": cheaper})

    assert {**PARTS, "prices": cheaper} == document[REGION]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "is not of schema 1"),
        ('{"schema": 2}', "is not of schema 1"),
    ],
)
def test_a_broken_file_is_named_with_what_to_do(text, problem, tmp_path):
    file = tmp_path / "refreshed.json"
    file.write_text(text)

    with pytest.raises(InvalidInputError, match=problem) as caught:
        read_refreshed(file)

    assert "run `compilegate facts refresh` again, or delete the file" in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    "damaged",
    [
        {"prices": [{"instance_type": "ml.g5.xlarge"}]},
        {"quotas": [{**QUOTA, "more": 1}]},
        {"images": [{"uri": URI}]},
    ],
)
def test_a_damaged_row_is_refused_not_skipped(damaged):
    with pytest.raises(InvalidInputError, match="is damaged"):
        laid_over(SHIPPED, json.loads(json.dumps({REGION: damaged})), REGION)
