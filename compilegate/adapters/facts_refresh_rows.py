"""Turns what AWS answers about prices, images and quotas into rows of facts; no calls here.

Shapes: botocore's models of GetProducts (with its example), DescribeImages and ListServiceQuotas.
What a usage type of a training instance looks like is quoted from AWS's bulk price file,
for example ``USE1-Train:ml.g5.2xlarge``.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = dict[str, Any]
CONFIDENCE = "list"  # AWS's own price list, read from the user's account
HOURS = ("Hrs", "Hours")
_TRAINING = re.compile(r"(?:[A-Z0-9]+-)?Train:(?P<type>ml\.[a-z0-9-]+\.[a-z0-9-]+)")


def price_rows(products: Iterable[str | Mapping[str, Any]], region: str) -> tuple[list[Row], str]:
    """One row per instance type, and a word on those that the list names several prices for.

    ``products`` are the entries of GetProducts' ``PriceList``: JSON as text.
    """
    found: dict[str, dict[float, Row]] = defaultdict(dict)
    for product in products:
        for row in _prices_of(product, region):
            found[row["instance_type"]][row["usd_per_hour"]] = row
    unclear = sorted(kind for kind, rows in found.items() if len(rows) > 1)
    rows = [next(iter(rows.values())) for rows in found.values() if len(rows) == 1]
    note = f"several prices are listed for {', '.join(unclear)}: left as they were" * bool(unclear)
    return sorted(rows, key=lambda row: str(row["instance_type"])), note


def _prices_of(product: str | Mapping[str, Any], region: str) -> Iterator[Row]:
    document = _mapping(json.loads(product) if isinstance(product, str) else product)
    attributes = _mapping(_mapping(document.get("product")).get("attributes"))
    usage = str(attributes.get("usagetype"))
    match = _TRAINING.fullmatch(usage)
    if match is None or attributes.get("regionCode", region) != region:
        return
    for term in _mapping(_mapping(document.get("terms")).get("OnDemand")).values():
        since = document.get("publicationDate") or _mapping(term).get("effectiveDate")
        for dimension in _mapping(_mapping(term).get("priceDimensions")).values():
            usd = _usd_per_hour(_mapping(dimension))
            if usd is not None:
                yield {
                    "instance_type": match["type"], "usd_per_hour": usd, "confidence": CONFIDENCE,
                    "region": region, "as_of": str(since)[:10] if since else None,
                    "source": f"AWS Price List API, AmazonSageMaker, usage type {usage}",
                }  # fmt: skip


def _usd_per_hour(dimension: Mapping[str, Any]) -> float | None:
    """A price of zero is a free tier's, not an instance's."""
    text = str(_mapping(dimension.get("pricePerUnit")).get("USD", ""))
    if dimension.get("unit") not in HOURS or not re.fullmatch(r"\d+(\.\d+)?", text):
        return None
    return float(text) or None


def quota_rows(quotas: Mapping[tuple[str, bool], int], as_of: str) -> list[Row]:
    """One row per instance type and kind of capacity."""
    source = "Service Quotas, Amazon SageMaker"
    return [
        {"instance_type": kind, "spot": spot, "instances": instances, "as_of": as_of,
         "source": source}
        for (kind, spot), instances in sorted(quotas.items())
    ]  # fmt: skip


def image_row(uri: str, detail: Mapping[str, Any] | None, as_of: str) -> Row:
    """An image that DescribeImages found, or did not: ``detail`` None."""
    pushed = None if detail is None else detail.get("imagePushedAt")
    return {
        "uri": uri, "found": detail is not None,
        "pushed_at": None if pushed is None else pushed.date().isoformat(),
        "digest": None if detail is None else detail.get("imageDigest"),
        "as_of": as_of, "source": "ECR DescribeImages",
    }  # fmt: skip


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
