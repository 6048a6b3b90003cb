"""Asking AWS for facts: its answers become rows, its refusals are reported, nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.facts import Facts, Price, Quota, Registry
from compilegate.facts import load_facts
from compilegate_facts.refresh import (
    PARTS,
    Answers,
    ask,
    changes,
    image_uris,
    merged,
    price_rows,
    refreshed_body,
)
from tests.facts.answers import StubbedClients, image, product, quota

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


def price(kind: str = "ml.g5.xlarge", **changed: Any) -> dict[str, Any]:
    return {
        "instance_type": kind, "usd_per_hour": 1.41, "confidence": "list",
        "region": REGION, "as_of": "2026-11-19",
        "source": f"AWS Price List API, AmazonSageMaker, usage type EU-Train:{kind}", **changed,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (product(), {}),
        (product(unit="Hours"), {}),
        (product(usd="2"), {"usd_per_hour": 2.0}),
        (product().replace("regionCode", "location"), {}),  # the list was asked for one region
        # A price's own date where the list has none.
        (product(published=None), {"as_of": "2026-11-01"}),
        (product(published=None).replace("effectiveDate", "other"), {"as_of": None}),
        (json.loads(product()), {}),
    ],
)
def test_a_training_price_is_dated_by_the_list_and_names_its_usage_type(
    listed: Any, expected: dict[str, Any]
) -> None:
    assert ([price(**expected)], "") == price_rows([listed], REGION)


def test_prices_are_read_from_every_page_by_type_and_unclear_ones_noted(
    clients: StubbedClients,
) -> None:
    clear, unclear = ("ml.p4d.24xlarge", "ml.g5.xlarge"), ("ml.g5.8xlarge", "ml.g5.4xlarge")
    page = [product(kind, usd) for kind in unclear for usd in ("1.4", "1.5")]
    clients.prices([product(kind) for kind in clear], page)

    prices = asked(clients, ["prices"])
    clients.prices([product()])

    assert {"prices": [price(kind) for kind in sorted(clear)]} == prices.rows
    assert (
        ["several prices are listed for ml.g5.4xlarge, ml.g5.8xlarge: left as they were"],
        {},
    ) == (
        prices.notes,
        prices.not_read,
    )
    assert [] == asked(clients, ["prices"]).notes
    assert {("pricing", "us-east-1")} == {*clients.asked}


def test_an_accounts_quotas_lie_over_the_defaults(clients: StubbedClients) -> None:
    clients.quotas(
        [quota("ml.g5.xlarge", 1.0, spot=True), quota("ml.g5.xlarge", 2.0), quota("ml.a", 3.0)],
        [quota("ml.g5.xlarge", 8.0)],
    )

    about = {"as_of": DAY, "source": "Service Quotas, Amazon SageMaker"}
    assert [
        {"instance_type": kind, "spot": spot, "instances": instances, **about}
        for kind, spot, instances in (
            ("ml.a", False, 3), ("ml.g5.xlarge", False, 8), ("ml.g5.xlarge", True, 1),
        )
    ] == asked(clients, ["quotas"]).rows["quotas"]  # fmt: skip
    assert [("service-quotas", REGION)] == clients.asked


def few_images() -> Facts:
    """Facts of three images in two registries of the region, with what it has none of."""
    row, compiled = FACTS.images[0], FACTS.managed.images[0]
    tags = (("a", "2-gpu", "2-cpu"), ("a", "2-gpu", None), ("elsewhere", "3-gpu", "3-cpu"))
    managed = (
        replace(compiled, registry="b", repository="team/compiler", tag="t", regions=(REGION,)),
        replace(compiled, registry="b", repository="other", tag="u", regions=("us-east-1",)),
    )
    accounts = {"a": {REGION: "111122223333"}, "b": {REGION: "444455556666"}, "elsewhere": {}}
    return replace(
        FACTS, managed=replace(FACTS.managed, images=managed),
        images=tuple(
            replace(row, registry=registry, repository="torch", gpu_tag=gpu, cpu_tag=cpu)
            for registry, gpu, cpu in tags
        ),
        registries={name: Registry(one, "", "") for name, one in accounts.items()},
    )  # fmt: skip


def test_each_image_of_the_region_is_looked_up_once_until_its_registry_refuses(
    clients: StubbedClients,
) -> None:
    facts, domain = few_images(), f"dkr.ecr.{REGION}.amazonaws.com"
    uris = [f"111122223333.{domain}/torch:2-gpu", f"111122223333.{domain}/torch:2-cpu",
            f"444455556666.{domain}/team/compiler:t"]  # fmt: skip
    operation, names = "describe_images", {"registryId": "111122223333", "repositoryName": "torch"}
    tags = [[{"imageTag": tag}] for tag in ("2-gpu", "2-cpu", "t")]
    clients.answer("ecr", operation, image("torch", "2-gpu"), **names, imageIds=tags[0])
    clients.answer("ecr", operation, {"imageDetails": []}, **names, imageIds=tags[1])
    clients.refuse("ecr", operation, "ImageNotFoundException")
    clients.refuse("ecr", operation, "AccessDeniedException")
    clients.answer("ecr", operation, image("team/compiler", "t"), registryId="444455556666",
                   repositoryName="team/compiler", imageIds=tags[2])  # fmt: skip
    looked, refused = (
        ask(facts, REGION, clients, parts=["images"], day=DAY) for _ in range(2)
    )  # fmt: skip

    about = {"as_of": DAY, "source": "ECR DescribeImages"}
    there = {"found": True, "pushed_at": "2026-07-22", "digest": f"sha256:{'0' * 64}", **about}
    absent = {"found": False, "pushed_at": None, "digest": None, **about}
    assert uris == image_uris(facts, REGION)
    assert [
        {"uri": uri, **row} for uri, row in zip(uris, (there, absent, absent), strict=True)
    ] == (looked.rows["images"])
    assert ({}, [{"uri": uris[2], **there}]) == (looked.not_read, refused.rows["images"])
    ((what, why),) = refused.not_read.items()
    assert "images of registry 111122223333" == what
    assert why.startswith("not allowed for these credentials, or not by the owner: ")
    clients.done()


def test_what_was_read_replaces_its_part_of_its_region_and_says_what_has_changed() -> None:
    kept = {REGION: {"prices": [1], "quotas": [2]}, "us-east-1": {"prices": [3]}}
    assert {**kept, REGION: {"prices": [4], "quotas": [2]}} == merged(kept, REGION, {"prices": [4]})
    assert {REGION: {"quotas": [5]}} == merged({}, REGION, {"quotas": [5]})
    text = refreshed_body({"b": 1, "a": []}).decode()
    assert text.startswith('{\n "about": "Read from an AWS account')
    assert text.endswith('",\n "regions": {\n  "a": [],\n  "b": 1\n },\n "schema": 1\n}\n')

    def facts(prices: dict[str, float], quotas: dict[Any, int], *absent: str) -> Facts:
        return replace(
            FACTS, absent_images=dict.fromkeys(absent, DAY),
            prices={kind: Price(kind, usd, "list", None, None, "") for kind, usd in prices.items()},
            quotas={(kind, spot): Quota(kind, spot, instances, "", "")
                    for (kind, spot), instances in quotas.items()},
        )  # fmt: skip

    before = facts({"a": 1.0, "b": 2.0}, {("a", False): 3, ("a", True): 4}, "gone", "back")
    after = facts(
        {"a": 1.0, "b": 2.5, "c": 6.0}, {("a", False): 3, ("a", True): 5, ("b", False): 0},
        "new", "gone",
    )  # fmt: skip
    assert [
        ("price", "b", 2.0, 2.5), ("price", "c", None, 6.0), ("spot quota", "a", 4, 5),
        ("quota", "b", None, 0), ("image", "back", False, True), ("image", "new", True, False),
    ] == [tuple(row.values()) for row in changes(before, after)]  # fmt: skip
    assert ["part", "what", "old", "new"] == [*changes(before, after)[0]]
