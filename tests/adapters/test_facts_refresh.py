"""Asking AWS for facts: its answers become rows, its refusals are reported, nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.facts import load_facts
from compilegate_facts.refresh import (
    PARTS,
    Answers,
    ask,
    image_uris,
    price_rows,
)
from tests.facts.answers import StubbedClients, product, quota

REGION, DAY = "eu-west-1", "2026-11-21"
FACTS = load_facts()


@pytest.fixture
def clients() -> StubbedClients:
    return StubbedClients()


def asked(clients: StubbedClients, parts: Sequence[str], region: str = REGION) -> Answers:
    return ask(FACTS, region, clients, parts=parts, day=DAY)


@pytest.mark.parametrize(
    "changes",
    [
        {"usagetype": "EU-TrSpt:ml.g5.xlarge"},
        {"usagetype": "EU-Studio:JupyterLab-ml.g5.xlarge"},
        {"usagetype": "EU-Host:ml.g5.xlarge"},
        {"usagetype": "EU-Train:VolumeUsage.gp2"},
        {"usd": "0.0000000000"},
        {"usd": "-1.0"},
        {"usd": "a lot"},
        {"currency": "CNY"},
        {"unit": "GB-Mo"},
        {"region": "us-east-1"},
    ],
)
def test_what_is_no_hourly_training_price_of_the_region_is_left_out(
    changes: dict[str, Any],
) -> None:
    assert ([], "") == price_rows([product(**changes)], REGION)


def test_two_prices_of_one_type_are_reported_and_neither_is_taken() -> None:
    rows, note = price_rows(
        [product(usd="1.4"), product(usd="1.5"), product("ml.g5.2xlarge")], REGION
    )

    assert ["ml.g5.2xlarge"] == [row["instance_type"] for row in rows]
    assert "several prices are listed for ml.g5.xlarge" in note


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "product",
                    "attributes",
                    "usagetype",
                    "terms",
                    "OnDemand",
                    "priceDimensions",
                    "unit",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_shape_of_an_answer_breaks_the_reading_or_becomes_a_price(value: Any) -> None:
    assert ([], "") == price_rows([json.dumps(value)], REGION)


def test_an_empty_price_list_is_reported_and_changes_nothing(clients: StubbedClients) -> None:
    clients.prices([])

    answers = asked(clients, ["prices"])

    assert {} == answers.rows
    assert "names no training instance of eu-west-1" in answers.not_read["prices"]


def test_chinas_price_list_is_not_asked(clients: StubbedClients) -> None:
    answers = asked(clients, ["prices"], region="cn-north-1")

    assert ([], "yuan" in answers.not_read["prices"]) == (clients.asked, True)


def test_a_repository_that_is_not_known_says_nothing_of_its_images(clients: StubbedClients) -> None:
    accounts = {uri.partition(".")[0] for uri in image_uris(FACTS, REGION)}
    for _ in accounts:
        clients.refuse("ecr", "describe_images", "RepositoryNotFoundException")

    answers = asked(clients, ["images"])

    assert {} == answers.rows
    assert {f"images of registry {account}" for account in accounts} == set(answers.not_read)


def test_one_refusal_leaves_the_other_parts_alone(clients: StubbedClients) -> None:
    clients.refuse("pricing", "get_products", "AccessDeniedException", "pricing:GetProducts")
    clients.refuse("ecr", "describe_images", "ThrottlingException")
    clients.refuse("ecr", "describe_images", "ThrottlingException")
    clients.quotas([quota("ml.g5.xlarge", 4.0)], [])

    answers = asked(clients, PARTS)

    assert ["quotas"] == list(answers.rows)
    assert "pricing:GetProducts" in answers.not_read["prices"]
    assert any("Throttling" in why for why in answers.not_read.values())


def test_a_training_price_is_dated_by_the_list_and_names_its_usage_type() -> None:
    rows, note = price_rows([product()], REGION)

    expected = {
        "instance_type": "ml.g5.xlarge", "usd_per_hour": 1.41, "confidence": "list",
        "region": REGION, "as_of": "2026-11-19",
        "source": "AWS Price List API, AmazonSageMaker, usage type EU-Train:ml.g5.xlarge",
    }  # fmt: skip
    assert ([expected], "") == (rows, note)
