"""The fact files: versions, images, instances, prices and limits, each row with source and date."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from compilegate.domain import codec
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import (
    Facts,
    FrameworkImage,
    Gpu,
    Instance,
    LowerPrecision,
    ManagedCompiler,
    Price,
    Quota,
    Registry,
    TestedModel,
)
from compilegate.domain.faults import FaultTable

FOLDER = Path(__file__).parent
# What an account's own answers say: prices, images and quotas by region. `facts refresh` writes the
# file, from where it is deployed with the others; it is absent until then.
FILE = FOLDER / "refreshed.json"
SCHEMA = 1
FIX = "run `compilegate facts refresh` again, or delete the file"


def read(name: str) -> dict[str, Any]:
    """One fact file as it stands, with its sources."""
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return document


@cache
def step_functions_fields() -> frozenset[str]:
    """Paths of the request's fields that Step Functions passes on to SageMaker."""
    return frozenset(row["field"] for row in read("step_functions_fields")["rows"])


@cache
def quota_codes() -> dict[tuple[str, bool], str]:
    """Service Quotas' code of a type's training quota, by type and whether on spot capacity."""
    return {(row["instance_type"], row["spot"]): row["code"] for row in read("quota_codes")["rows"]}


@cache
def load_facts(region: str | None = None) -> Facts:
    """The shipped facts, read on first use and kept.

    With a region, what was last read from the account there lies over them (refreshed.json).
    """
    if region is not None:
        return laid_over(load_facts(), read_refreshed(), region)
    images, assumptions, tested = map(read, ("framework_images", "assumptions", "tested_models"))
    common = {"source": tested["source"], "as_of": tested["as_of"]}
    types, managed = read("instances"), read("compiler_versions")
    gpus = {name: Gpu(name=name, **row) for name, row in types["gpus"].items()}
    instances = (Instance(**{**row, "gpu": gpus.get(row["gpu"])}) for row in types["instances"])
    return Facts(
        as_of=images["as_of"],
        instances={one.instance_type: one for one in instances},
        prices={row["instance_type"]: Price(**row) for row in read("prices")["prices"]},
        images=tuple(FrameworkImage(**row) for row in images["images"]),
        registries={name: Registry(**row) for name, row in images["registries"].items()},
        managed=codec.read(ManagedCompiler, {**managed, "images": managed["versions"]}),
        tested_models=tuple(TestedModel(**common, **row) for row in tested["tested_models"]),
        lower_precision=LowerPrecision(**assumptions["lower_precision"][0]),
        faults=codec.read(FaultTable, read("equivalence")),
    )


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
    rows = regions.get(region)
    if rows is None:
        return facts
    try:
        prices = {row["instance_type"]: Price(**row) for row in rows.get("prices", [])}
        quotas = [Quota(**row) for row in rows.get("quotas", [])]
        absent = {row["uri"]: row["as_of"] for row in rows.get("images", []) if not row["found"]}
    except (KeyError, TypeError) as error:
        raise InvalidInputError(f"is damaged: {error}", file=str(FILE), fix=FIX) from error
    return replace(
        facts,
        prices={**facts.prices, **prices},
        quotas={(row.instance_type, row.spot): row for row in quotas},
        absent_images=absent,
    )
