"""The fact files, read once: versions, images, instances, prices and limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from compilegate.domain.facts_images import CompilerImage, FrameworkImage, Registry
from compilegate.domain.facts_model import (
    CompileOverhead,
    ComputeSpeedup,
    Facts,
    Gpu,
    Instance,
    Limits,
    ManagedCompiler,
    Price,
    TestedModel,
)

FILES = (
    "assumptions", "compiler_versions", "framework_images", "instances", "limits", "prices",
    "tested_models",
)  # fmt: skip


def read(name: str) -> dict[str, Any]:
    """One fact file as it stands, with its sources."""
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def load_facts() -> Facts:
    """Every fact, read on first use and kept."""
    images = read("framework_images")
    prices = read("prices")["prices"]
    assumptions = read("assumptions")
    return Facts(
        as_of=images["as_of"],
        instances=_instances(read("instances")),
        prices={row["instance_type"]: Price(**row) for row in prices},
        images=tuple(FrameworkImage(**_known(row)) for row in images["images"]),
        registries={
            name: Registry(row["accounts"], row["source"])
            for name, row in images["registries"].items()
        },
        managed=_managed(read("compiler_versions")),
        tested_models=tuple(TestedModel(**row) for row in read("tested_models")["tested_models"]),
        compile_overheads=tuple(
            CompileOverhead(**_known(row)) for row in assumptions["compile_overhead"]
        ),
        compute_speedups=tuple(
            ComputeSpeedup(**_known(row)) for row in assumptions["compute_speedup"]
        ),
        limits=Limits(**read("limits")["create_training_job"]),
    )


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without its date, which the file keeps for people."""
    return {key: value for key, value in row.items() if key != "as_of"}


def _instances(document: Mapping[str, Any]) -> dict[str, Instance]:
    gpus = {name: Gpu(name=name, **_known(row)) for name, row in document["gpus"].items()}
    return {
        row["instance_type"]: Instance(**{**_known(row), "gpu": gpus.get(row["gpu"])})
        for row in document["instances"]
    }


def _managed(document: Mapping[str, Any]) -> ManagedCompiler:
    images = []
    for row in document["versions"]:
        values = {
            key: value for key, value in _known(row).items() if key not in {"min_sdk", "note"}
        }
        values["regions"] = tuple(values["regions"])
        values["versions_accepted"] = tuple(values["versions_accepted"])
        images.append(CompilerImage(**values))
    return ManagedCompiler(
        status=document["status"],
        status_source=document["status_source"],
        instance_families=tuple(document["instance_families"]),
        instance_families_source=document["instance_families_source"],
        images=tuple(images),
    )
