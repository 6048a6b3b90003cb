"""Asks AWS for prices, images and quotas of a region; written after its documentation.

Permissions: pricing:GetProducts, ecr:DescribeImages, servicequotas:ListServiceQuotas and
servicequotas:ListAWSDefaultServiceQuotas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.adapters.clients import error_code
from compilegate.adapters.facts_refresh_rows import Row, image_row, price_rows, quota_rows
from compilegate.adapters.service_quotas import training_quotas
from compilegate.domain.facts.model import Facts

PARTS = ("prices", "images", "quotas")
# The Price List API has an endpoint here for every commercial region's prices
# (botocore's endpoints: us-east-1, eu-central-1, ap-south-1).
PRICE_ENDPOINT = "us-east-1"
Clients = Callable[[str, str], Any]


@dataclass
class Answers:
    """What was read, by part, and why anything else was not; ``notes`` are for people."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    not_read: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def ask(facts: Facts, region: str, clients: Clients, *, parts: Sequence[str], day: str) -> Answers:
    """Read the parts; one that AWS refuses is told and leaves the others alone.

    ``clients`` makes a boto3 client of a service in a region; ``day`` is today's date.
    """
    answers = Answers()
    for part in parts:
        try:
            _READERS[part](answers, facts, region, clients, day)
        except Exception as error:
            # Missing credentials and networks are the whole command's matter.
            if not error_code(error):
                raise
            answers.not_read[part] = _refusal(error)
    return answers


def image_uris(facts: Facts, region: str) -> list[str]:
    """Every image on file that the region should have, each once."""
    found = [
        facts.registries[row.registry].uri(region, row.repository, tag)
        for row in facts.images
        for tag in (row.gpu_tag, row.cpu_tag)
        if tag is not None
    ]
    found += [
        facts.registries[row.registry].uri(region, row.repository, row.tag)
        for row in facts.managed.images
        if region in row.regions
    ]
    return list(dict.fromkeys(uri for uri in found if uri is not None))


def _prices(answers: Answers, _facts: Facts, region: str, clients: Clients, _day: str) -> None:
    if region.startswith("cn-"):
        answers.not_read["prices"] = "China's price list is in yuan, not in US dollars"
        return
    pages = clients("pricing", PRICE_ENDPOINT).get_paginator("get_products").paginate(
        ServiceCode="AmazonSageMaker",
        Filters=[
            {"Type": "TERM_MATCH", "Field": "regionCode", "Value": region},
            {"Type": "TERM_MATCH", "Field": "platoinstancetype", "Value": "Training"},
        ],
    )  # fmt: skip
    rows, note = price_rows((entry for page in pages for entry in page["PriceList"]), region)
    answers.notes += [note] if note else []
    if rows:
        answers.rows["prices"] = rows
    else:
        answers.not_read["prices"] = f"the price list names no training instance of {region}"


def _quotas(answers: Answers, _facts: Facts, region: str, clients: Clients, day: str) -> None:
    """ListServiceQuotas leaves out what was never changed, so the defaults come first."""
    client = clients("service-quotas", region)
    found = {
        **training_quotas(_quotas_of(client, "list_aws_default_service_quotas")),
        **training_quotas(_quotas_of(client, "list_service_quotas")),
    }
    answers.rows["quotas"] = quota_rows(found, day)


def _quotas_of(client: Any, operation: str) -> Iterable[Any]:
    pages = client.get_paginator(operation).paginate(ServiceCode="sagemaker")
    return (quota for page in pages for quota in page["Quotas"])


def _images(answers: Answers, facts: Facts, region: str, clients: Clients, day: str) -> None:
    """One question per image: a question for several fails as a whole when one is missing."""
    client = clients("ecr", region)
    closed: set[str] = set()
    rows = []
    for uri in image_uris(facts, region):
        account = uri.partition(".")[0]
        if account in closed:
            continue
        try:
            rows.append(image_row(uri, _described(client, uri), day))
        except Exception as error:
            if not error_code(error):
                raise
            closed.add(account)
            answers.not_read[f"images of registry {account}"] = _refusal(error)
    if rows:
        answers.rows["images"] = rows


def _described(client: Any, uri: str) -> Any:
    """What the registry says of an image; None when it has no such tag."""
    registry, _, rest = uri.partition("/")
    repository, _, tag = rest.rpartition(":")
    try:
        answer = client.describe_images(
            registryId=registry.partition(".")[0],
            repositoryName=repository,
            imageIds=[{"imageTag": tag}],
        )
    except Exception as error:
        if error_code(error) == "ImageNotFoundException":
            return None
        raise
    return next(iter(answer["imageDetails"]), None)


def _refusal(error: Exception) -> str:
    text = " ".join(str(error).split())
    if error_code(error).startswith("AccessDenied"):
        return f"not allowed for these credentials, or not by the owner: {text}"
    return text


_READERS: dict[str, Callable[[Answers, Facts, str, Clients, str], None]] = {
    "prices": _prices,
    "images": _images,
    "quotas": _quotas,
}
