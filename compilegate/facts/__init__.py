"""The fact files: versions, images, instances, prices and limits, each row with source and date."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from compilegate.domain import codec
from compilegate.domain.facts import (
    Facts,
    FrameworkImage,
    Gpu,
    Instance,
    LowerPrecision,
    ManagedCompiler,
    Price,
    Registry,
    TestedModel,
)
from compilegate.facts.refreshed import laid_over, read_refreshed

FOLDER = Path(__file__).parent


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
    )
