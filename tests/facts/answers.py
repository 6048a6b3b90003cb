"""AWS's answers as ``compilegate facts refresh`` meets them.

Written, not recorded: GetProducts after the example in botocore's data/pricing/2017-10-15 and the
usage types that AWS's bulk price file is quoted with; DescribeImages and ListServiceQuotas after
botocore's models. Figures are made up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import botocore.session
from botocore.client import BaseClient
from botocore.stub import ANY, Stubber

PUBLISHED = "2026-11-19T21:03:12Z"
REGISTRY = "763104351884"


def product(
    kind: str = "ml.g5.xlarge", usd: str = "1.4100000000", region: str = "eu-west-1", **changes: Any
) -> str:
    """One entry of GetProducts' PriceList, as JSON in text."""
    values = {
        "usagetype": f"EU-Train:{kind}",
        "unit": "Hrs",
        "currency": "USD",
        "published": PUBLISHED,
        **changes,
    }
    sku = "QWERTY123"
    term = {
        "priceDimensions": {
            f"{sku}.JRTCKXETXF.6YS6EN2CT7": {
                "unit": values["unit"], "pricePerUnit": {values["currency"]: usd},
            }
        },
        "effectiveDate": "2026-11-01T00:00:00Z",
    }  # fmt: skip
    document = {
        "product": {
            "attributes": {
                "regionCode": region, "instanceType": f"{kind}-Training", "instanceName": kind,
                "platoinstancetype": "Training", "component": "Training",
                "usagetype": values["usagetype"],
            },
        },
        "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": term}},
        "publicationDate": values["published"],
    }  # fmt: skip
    return json.dumps(document)


def quota(kind: str, instances: float, *, spot: bool = False) -> dict[str, Any]:
    """One entry of ListServiceQuotas."""
    name = f"{kind} for {'spot ' * spot}training job usage"
    return {"QuotaCode": "L-3F53BF0F", "QuotaName": name, "Value": instances}


def image(repository: str, tag: str) -> dict[str, Any]:
    """DescribeImages' answer for one tag."""
    detail = {
        "registryId": REGISTRY, "repositoryName": repository, "imageDigest": "sha256:" + "0" * 64,
        "imageTags": [tag], "imageSizeInBytes": 9_000_000_000,
        "imagePushedAt": datetime(2026, 7, 22, tzinfo=UTC),
    }  # fmt: skip
    return {"imageDetails": [detail]}


class StubbedClients:
    """boto3 clients whose answers are given beforehand; they check requests and answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self._clients: dict[str, BaseClient] = {}
        self.stubs: dict[str, Stubber] = {}

    def __call__(self, service: str, region: str) -> BaseClient:
        self.asked.append((service, region))
        return self._client(service)

    def _client(self, service: str) -> BaseClient:
        if service not in self._clients:
            self._clients[service] = botocore.session.Session().create_client(
                service,
                region_name="us-east-1",
                aws_access_key_id="a",
                aws_secret_access_key="b",
            )
            self.stubs[service] = Stubber(self._clients[service])
            self.stubs[service].activate()
        return self._clients[service]

    def answer(self, service: str, operation: str, answer: Any, **expected: Any) -> None:
        """The next answer of an operation, and what it must have been asked."""
        self._client(service)
        self.stubs[service].add_response(operation, answer, expected or None)

    def refuse(self, service: str, operation: str, code: str, message: str = "no") -> None:
        """The next call of an operation ends in an error."""
        self._client(service)
        self.stubs[service].add_client_error(operation, code, message)

    def prices(self, *pages: Sequence[str]) -> None:
        """Pages of the price list."""
        filters = [
            {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-west-1"},
            {"Type": "TERM_MATCH", "Field": "platoinstancetype", "Value": "Training"},
        ]
        for number, page in enumerate(pages):
            more = {"NextToken": str(number + 1)} if number + 1 < len(pages) else {}
            before = {"NextToken": str(number)} if number else {}
            self.answer(
                "pricing", "get_products",
                {"FormatVersion": "aws_v1", "PriceList": list(page), **more},
                ServiceCode="AmazonSageMaker", Filters=filters, **before,
            )  # fmt: skip

    def quotas(self, defaults: Sequence[Any], applied: Sequence[Any]) -> None:
        """The defaults in two pages, then what was raised."""
        asked = {"ServiceCode": "sagemaker"}
        first = {"Quotas": list(defaults[:1]), "NextToken": "1"}
        operation = "list_aws_default_service_quotas"
        self.answer("service-quotas", operation, first, **asked)
        second = {"Quotas": list(defaults[1:])}
        self.answer("service-quotas", operation, second, **asked, NextToken="1")
        answer = {"Quotas": list(applied)}
        self.answer("service-quotas", "list_service_quotas", answer, **asked)

    def images(self, uris: Sequence[str], missing: Callable[[str], bool] = lambda _: False) -> None:
        """An answer per image, in order."""
        for uri in uris:
            repository, _, tag = uri.partition("/")[2].rpartition(":")
            if missing(uri):
                self.refuse("ecr", "describe_images", "ImageNotFoundException")
            else:
                self.answer(
                    "ecr", "describe_images", image(repository, tag),
                    registryId=ANY, repositoryName=repository, imageIds=[{"imageTag": tag}],
                )  # fmt: skip

    def done(self) -> None:
        """Every answer was asked for."""
        for stub in self.stubs.values():
            stub.assert_no_pending_responses()
