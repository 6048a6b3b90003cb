"""The facts as rows that people can look up: one list per topic, each row with source and date."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from compilegate.domain.compilers.managed import MANAGED_COMPILER
from compilegate.domain.facts.model import Facts
from compilegate.facts import read

Row = dict[str, Any]
OLD_DAYS, VERY_OLD_DAYS = 180, 365
OTHER_COMPILERS = "none"
_TESTED = re.compile(r"(?:Transformers (?P<transformers>\S+) with )?(?P<name>\w+) (?P<version>\S+)")


@dataclass(frozen=True)
class Topic:
    """One subject: what its rows say, the file they come from, and how they are made."""

    about: str
    file: str
    rows: Callable[[Facts, str], list[Row]]

    @property
    def source_kind(self) -> str:
        """Where the file's rows come from, in a few words."""
        return str(read(self.file)["source_kind"])


def age_days(as_of: str | None, today: date) -> int | None:
    """Days since a row was true; None where its source is undated."""
    return None if as_of is None else (today - date.fromisoformat(as_of)).days


def with_age(rows: Sequence[Mapping[str, Any]], today: date) -> list[Row]:
    """The rows with how old each is."""
    return [{**row, "age_days": age_days(row["as_of"], today)} for row in rows]


def overview(name: str, rows: Sequence[Mapping[str, Any]], today: date) -> Row:
    """How much is known of a topic and how old it is; dates are of the dated rows."""
    dated = sorted(str(row["as_of"]) for row in rows if row["as_of"] is not None)
    oldest = dated[0] if dated else None
    return {
        "topic": name,
        "about": TOPICS[name].about,
        "rows": len(rows),
        "as_of": {"oldest": oldest, "newest": dated[-1] if dated else None},
        "age_days": age_days(oldest, today),
        "undated": len(rows) - len(dated),
        "source_kind": _kinds(name, rows),
    }


def _kinds(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    read_here = any(row.get("confidence") == "list" for row in rows)
    given = any(row.get("given") for row in rows)
    return TOPICS[name].source_kind + ", your account" * read_here + ", cdk.json" * given


def _images(facts: Facts, region: str) -> list[Row]:
    own = [
        {**asdict(row), "compiler": row.compiler or OTHER_COMPILERS, "patched_until": None,
         "given": True, "source": "given in cdk.json", "as_of": None}
        for row in facts.own_images
    ]  # fmt: skip
    plain = [
        {**asdict(row), "compiler": OTHER_COMPILERS,
         "uri": facts.registries[row.registry].uri(
             region, row.repository, row.gpu_tag or row.cpu_tag or "")}
        for row in facts.images
    ]  # fmt: skip
    keys = ("framework", "version", "transformers", "python", "repository", "registry")
    managed = [
        {**{key: getattr(row, key) for key in keys}, "compiler": MANAGED_COMPILER,
         "gpu_tag": row.tag, "cpu_tag": None, "patched_until": None,
         "uri": facts.registries[row.registry].uri(region, row.repository, row.tag)
         if region in row.regions else None,
         "source": row.source, "as_of": row.as_of}
        for row in facts.managed.images
    ]  # fmt: skip
    absent = facts.absent_images
    return [
        *own,
        *({**row, "not_found_on": absent.get(str(row["uri"]))} for row in (*plain, *managed)),
    ]


def _compiler(facts: Facts, region: str) -> list[Row]:
    return [
        {**asdict(row), "accounts": dict(facts.registries[row.registry].accounts),
         "in_region": region in row.regions}
        for row in facts.managed.images
    ]  # fmt: skip


def _instances(facts: Facts, _region: str) -> list[Row]:
    families = facts.managed.instance_families
    return [
        {**asdict(row), "managed_compiler": row.family in families,
         "quota": facts.quota(row.instance_type),
         "spot_quota": facts.quota(row.instance_type, spot=True)}
        for row in facts.instances.values()
    ]  # fmt: skip


def _models(facts: Facts, _region: str) -> list[Row]:
    return [
        {**asdict(row), **_framework(row.framework),
         "batch_ratio": row.batches and row.batches.batch_ratio}
        for row in facts.tested_models
    ]  # fmt: skip


def _framework(label: str) -> Row:
    """``Transformers 4.11.0 with PyTorch 1.9.0`` in the workload file's words."""
    found = _TESTED.fullmatch(label)
    if found is None:
        raise ValueError(f"{label!r} names no framework")
    prefix = "huggingface-" if found["transformers"] else ""
    return {
        "framework": prefix + found["name"].lower(),
        "version": found["version"],
        "transformers": found["transformers"],
    }


def _prices(facts: Facts, _region: str) -> list[Row]:
    return [
        {**asdict(row), **({"given": True} if row.confidence == "given" else {})}
        for row in facts.prices.values()
    ]


def _assumptions(facts: Facts, _region: str) -> list[Row]:
    found: list[Row] = [
        *(asdict(row) for row in facts.compile_overheads),
        *(asdict(row) for row in facts.compute_speedups),
        {"compiler": None, **asdict(facts.lower_precision)},
    ]
    return [{"source": row["basis"], **row} for row in found]


def _limits(_facts: Facts, _region: str) -> list[Row]:
    document = read("limits")
    request = [
        {"service": "CreateTrainingJob", "name": name.replace("_", " "), "value": value,
         "unit": None, "note": None, "source": document["source"], "as_of": document["as_of"]}
        for name, value in document["create_training_job"].items()
    ]  # fmt: skip
    return [*request, *document["rows"]]


def _rows_of(file: str) -> Callable[[Facts, str], list[Row]]:
    return lambda _facts, _region: list(read(file)["rows"])


TOPICS: Mapping[str, Topic] = {
    "images": Topic("training images by framework", "framework_images", _images),
    "compiler": Topic("what the managed compiler exists for", "compiler_versions", _compiler),
    "instances": Topic("instance types and their GPUs", "instances", _instances),
    "models": Topic("batches that the managed compiler was tested with", "tested_models", _models),
    "prices": Topic("US dollars per hour of one instance, on demand", "prices", _prices),
    "assumptions": Topic("what is assumed until it is measured", "assumptions", _assumptions),
    "request-keys": Topic("what switches what on in a request", "request_keys",
                          _rows_of("request_keys")),
    "limits": Topic("limits of the services used", "limits", _limits),
    "lifecycle": Topic("what is frozen, unpatched or removed", "lifecycle", _rows_of("lifecycle")),
    "failures": Topic("how compiled jobs fail", "failures", _rows_of("failures")),
    "gaps": Topic("what the SDK lets through or refuses", "sdk_gaps", _rows_of("sdk_gaps")),
}  # fmt: skip
