"""Asks AWS about prices, images and quotas; its answers become rows of facts, kept in one file.

Shapes: botocore's models of GetProducts (with its example), DescribeImages and ListServiceQuotas.
What a usage type of a training instance looks like is quoted from AWS's bulk price file,
for example ``USE1-Train:ml.g5.2xlarge``.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.sagemaker import training_quotas
from compilegate.adapters.stores import error_code, listed, unless
from compilegate.domain.facts import Facts
from compilegate.domain.outside import BROKEN
from compilegate.facts import SCHEMA

Row = dict[str, Any]
Clients = Callable[[str, str], Any]
CONFIDENCE = "list"  # AWS's own price list, read from the user's account
HOURS = ("Hrs", "Hours")
_TRAINING = re.compile(r"(?:[A-Z0-9]+-)?Train:(?P<type>ml\.[a-z0-9-]+\.[a-z0-9-]+)")
_USD = re.compile(r"\d+(\.\d+)?")
# The Price List API has an endpoint here for every commercial region's prices
# (botocore's endpoints: us-east-1, eu-central-1, ap-south-1).
PRICE_ENDPOINT = "us-east-1"
ABOUT = "Read from an AWS account by `compilegate facts refresh`; lies over the shipped facts."


@dataclass
class Answers:
    """What was read, by part, and why anything else was not; ``notes`` are for people."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    not_read: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def ask(facts: Facts, region: str, clients: Clients, *, parts: Sequence[str], day: str) -> Answers:
    """Read the parts; one that AWS refuses is named and does not affect the others.

    Any other error, as of missing credentials, is raised. ``clients`` makes a boto3 client of a
    service in a region; ``day`` is today's date.
    """
    answers = Answers()
    for part in parts:
        try:
            PARTS[part](answers, facts, region, clients, day)
        except ClientError as error:
            answers.not_read[part] = _refusal(error)
    return answers


def _refusal(error: ClientError) -> str:
    text = " ".join(str(error).split())
    if error_code(error).startswith("AccessDenied"):
        return f"not allowed for these credentials, or not by the owner: {text}"
    return text


def _prices(answers: Answers, _facts: Facts, region: str, clients: Clients, _day: str) -> None:
    if region.startswith("cn-"):
        answers.not_read["prices"] = "China's price list is in yuan, not in US dollars"
        return
    products = listed(
        clients("pricing", PRICE_ENDPOINT), "get_products", "PriceList",
        ServiceCode="AmazonSageMaker",
        Filters=[
            {"Type": "TERM_MATCH", "Field": "regionCode", "Value": region},
            {"Type": "TERM_MATCH", "Field": "platoinstancetype", "Value": "Training"},
        ],
    )  # fmt: skip
    rows, note = price_rows(products, region)
    answers.notes += [note] if note else []
    if rows:
        answers.rows["prices"] = rows
    else:
        answers.not_read["prices"] = f"the price list names no training instance of {region}"


def price_rows(products: Iterable[str | Mapping[str, Any]], region: str) -> tuple[list[Row], str]:
    """One row per instance type, and a note on those that the list names several prices for.

    ``products`` are the entries of GetProducts' ``PriceList``: JSON as text.
    """
    prices_by_type: dict[str, dict[float, Row]] = defaultdict(dict)
    for product in products:
        with suppress(*BROKEN):  # of another shape than that of a price
            document: Any = json.loads(product) if isinstance(product, str) else product
            for row in _prices_of(document, region):
                prices_by_type[row["instance_type"]][row["usd_per_hour"]] = row
    unclear = sorted(kind for kind, rows in prices_by_type.items() if len(rows) > 1)
    rows = [next(iter(rows.values())) for rows in prices_by_type.values() if len(rows) == 1]
    note = f"several prices are listed for {', '.join(unclear)}: left as they were" * bool(unclear)
    return sorted(rows, key=lambda row: str(row["instance_type"])), note


def _prices_of(product: Any, region: str) -> list[Row]:
    attributes = product["product"]["attributes"]
    match = _TRAINING.fullmatch(attributes["usagetype"])
    if not match or attributes.get("regionCode", region) != region:
        return []
    dimensions = [
        (product.get("publicationDate") or term.get("effectiveDate"), dimension)
        for term in product["terms"]["OnDemand"].values()
        for dimension in term["priceDimensions"].values()
        if dimension["unit"] in HOURS and _USD.fullmatch(dimension["pricePerUnit"].get("USD", ""))
    ]
    return [
        {
            "instance_type": match["type"], "usd_per_hour": usd, "confidence": CONFIDENCE,
            "region": region, "as_of": str(since)[:10] if since else None,
            "source": f"AWS Price List API, AmazonSageMaker, usage type {attributes['usagetype']}",
        }
        for since, dimension in dimensions
        if (usd := float(dimension["pricePerUnit"]["USD"]))  # zero is a free tier's
    ]  # fmt: skip


def _quotas(answers: Answers, _facts: Facts, region: str, clients: Clients, day: str) -> None:
    """ListServiceQuotas leaves out what was never changed, so the defaults come first."""
    client = clients("service-quotas", region)
    limits: dict[tuple[str, bool], int] = {}
    for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
        limits |= training_quotas(listed(client, operation, "Quotas", ServiceCode="sagemaker"))
    source = "Service Quotas, Amazon SageMaker"
    answers.rows["quotas"] = [
        {"instance_type": kind, "spot": spot, "instances": instances, "as_of": day,
         "source": source}
        for (kind, spot), instances in sorted(limits.items())
    ]  # fmt: skip


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
        except ClientError as error:
            answers.not_read[f"images of registry {account}"] = _refusal(error)
            closed.add(account)
    if rows:
        answers.rows["images"] = rows


def image_uris(facts: Facts, region: str) -> list[str]:
    """Every image on file that the region should have, each once."""
    uris = [
        facts.registries[row.registry].uri(region, row.repository, tag)
        for row in facts.images
        for tag in (row.gpu_tag, row.cpu_tag)
        if tag
    ]
    uris += [
        facts.registries[row.registry].uri(region, row.repository, row.tag)
        for row in facts.managed.images
        if region in row.regions
    ]
    return list(dict.fromkeys(uri for uri in uris if uri))


def _described(client: Any, uri: str) -> Any:
    """What the registry says of an image; None when it has no such tag."""
    registry, _, rest = uri.partition("/")
    repository, tag = rest.split(":")
    answer = unless(
        ("ImageNotFoundException",),
        client.describe_images,
        registryId=registry.partition(".")[0],
        repositoryName=repository,
        imageIds=[{"imageTag": tag}],
    )
    return answer and next(iter(answer["imageDetails"]), None)


def image_row(uri: str, detail: Mapping[str, Any] | None, as_of: str) -> Row:
    """The row of an image; ``detail`` is None where DescribeImages does not have it."""
    image = detail or {}
    pushed = image.get("imagePushedAt")
    return {
        "uri": uri, "found": detail is not None,
        "pushed_at": None if pushed is None else pushed.date().isoformat(),
        "digest": image.get("imageDigest"), "as_of": as_of, "source": "ECR DescribeImages",
    }  # fmt: skip


PARTS: Mapping[str, Callable[[Answers, Facts, str, Clients, str], None]] = {
    "prices": _prices,
    "images": _images,
    "quotas": _quotas,
}


# The file that keeps them (compilegate/facts/__init__.py).


def merged(
    regions: Mapping[str, Any], region: str, parts: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """The regions with one's freshly read parts in place of the old ones."""
    return {**regions, region: {**regions.get(region, {}), **parts}}


def changes(before: Facts, after: Facts) -> list[dict[str, Any]]:
    """What has changed: each with part, what, old and new; None where there was or is nothing."""
    values = [
        *(("price", kind, _usd(before, kind), _usd(after, kind)) for kind in after.prices),
        *(
            ("spot quota" if spot else "quota", kind, before.quota(kind, spot=spot), row.instances)
            for (kind, spot), row in after.quotas.items()
        ),
        *(
            ("image", uri, uri not in before.absent_images, uri not in after.absent_images)
            for uri in sorted({*before.absent_images, *after.absent_images})
        ),
    ]
    return [
        {"part": part, "what": what, "old": old, "new": new}
        for part, what, old, new in values
        if old != new
    ]


def _usd(facts: Facts, instance_type: str) -> float | None:
    price = facts.price(instance_type)
    return price.usd_per_hour if price else None


def refreshed_body(regions: Mapping[str, Any]) -> bytes:
    """The file's content, sorted so that a change reads well in a review."""
    document = {"schema": SCHEMA, "about": ABOUT, "regions": regions}
    return f"{json.dumps(document, indent=1, sort_keys=True)}\n".encode()
