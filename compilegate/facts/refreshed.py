"""What an account's own answers say: prices, images and quotas by region, in one file.

``compilegate facts refresh`` writes ``refreshed.json`` beside the shipped files, from where it
is deployed with them. It is absent until then, and never changes the facts of another region.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import Facts, Price, Quota

FILE = Path(__file__).with_name("refreshed.json")
SCHEMA = 1
ABOUT = "Read from an AWS account by `compilegate facts refresh`; lies over the shipped facts."
FIX = "run `compilegate facts refresh` again, or delete the file"


def read_refreshed(file: Path = FILE) -> dict[str, Any]:
    """The file's regions; none where it is absent. Raises InvalidInputError when it is broken."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise InvalidInputError(f"is not JSON: {error}", file=str(file), fix=FIX) from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InvalidInputError("is not of schema 1", file=str(file), fix=FIX)
    regions: dict[str, Any] = document.get("regions", {})
    return regions


def laid_over(facts: Facts, regions: Mapping[str, Any], region: str) -> Facts:
    """The facts with what was read in a region in their place."""
    read = regions.get(region)
    if read is None:
        return facts
    try:
        prices = {row["instance_type"]: Price(**row) for row in read.get("prices", [])}
        quotas = [Quota(**row) for row in read.get("quotas", [])]
        absent = {row["uri"]: row["as_of"] for row in read.get("images", []) if not row["found"]}
    except (KeyError, TypeError) as error:
        raise InvalidInputError(f"is damaged: {error}", file=str(FILE), fix=FIX) from error
    return replace(
        facts,
        prices={**facts.prices, **prices},
        quotas={(row.instance_type, row.spot): row for row in quotas},
        absent_images=absent,
    )


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
