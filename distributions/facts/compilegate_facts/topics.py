"""The facts as rows that people can look up: one list per topic, each row with source and date.

Filters choose rows; an unknown value is refused with the likely ones.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from compilegate.domain.compilers import COMPILERS
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import Facts, matches
from compilegate.domain.judging.equivalence import upper_bound
from compilegate.facts import read

Row = dict[str, Any]
OLD_DAYS, VERY_OLD_DAYS = 180, 365
OTHER_COMPILERS = "none"
MOST_VALUES = 12
# Filters that read a column of another name, and those that take a part of its text.
COLUMNS = {"instance": "instance_type"}
CONTAINED = ("model", "switches", "service", "subject")
_TESTED = re.compile(r"(?:Transformers (?P<transformers>\S+) with )?(?P<name>\w+) (?P<version>\S+)")


@dataclass(frozen=True)
class Topic:
    """One subject: what its rows say, the file they come from, and how they are made of it."""

    about: str
    file: str
    rows: Callable[[Facts, str], list[Row]]


def age_days(as_of: str | None, today: date) -> int | None:
    """Days since a row was true; None where its source is undated."""
    return (today - date.fromisoformat(as_of)).days if as_of else None


def with_age(rows: Sequence[Mapping[str, Any]], today: date) -> list[Row]:
    """The rows with how old each is."""
    return [{**row, "age_days": age_days(row["as_of"], today)} for row in rows]


def overview(name: str, rows: Sequence[Mapping[str, Any]], today: date) -> Row:
    """How many rows a topic has and how old they are; dates are of the dated rows."""
    dated = sorted(str(row["as_of"]) for row in rows if row["as_of"])
    oldest = dated[0] if dated else None
    kinds = [str(read(TOPICS[name].file)["source_kind"])]
    if any(row.get("confidence") == "list" for row in rows):
        kinds.append("your account")
    if any(row.get("given") for row in rows):
        kinds.append("cdk.json")
    return {
        "topic": name,
        "about": TOPICS[name].about,
        "rows": len(rows),
        "as_of": {"oldest": oldest, "newest": dated[-1] if dated else None},
        "age_days": age_days(oldest, today),
        "undated": len(rows) - len(dated),
        "source_kind": ", ".join(kinds),
    }


def _images(facts: Facts, region: str) -> list[Row]:
    own = [
        {**asdict(row), "compiler": row.compiler or OTHER_COMPILERS, "patched_until": None,
         "given": True, "source": "given in cdk.json", "as_of": None}
        for row in facts.own_images
    ]  # fmt: skip
    plain = [
        {**asdict(row), "compiler": OTHER_COMPILERS,
         "uri": facts.registries[row.registry].uri(
             region, row.repository, row.gpu_tag or row.cpu_tag or "") or None}
        for row in facts.images
    ]  # fmt: skip
    keys = ("framework", "version", "transformers", "python", "repository", "registry")
    managed = [
        {**{key: getattr(row, key) for key in keys}, "compiler": facts.managed.compiler,
         "gpu_tag": row.tag, "cpu_tag": None, "patched_until": None,
         "uri": facts.registries[row.registry].uri(region, row.repository, row.tag) or None
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
    """A framework such as ``Transformers 4.11.0 with PyTorch 1.9.0`` in the workload's words."""
    rows = []
    for row in facts.tested_models:
        match = _TESTED.fullmatch(row.framework)
        if not match:
            raise ValueError(f"{row.framework!r} names no framework")
        prefix = "huggingface-" if match["transformers"] else ""
        rows.append({
            **asdict(row), "framework": prefix + match["name"].lower(),
            "version": match["version"], "transformers": match["transformers"],
            "batch_ratio": row.batch_ratio,
        })  # fmt: skip
    return rows


def _prices(facts: Facts, _region: str) -> list[Row]:
    marked = {"given": True}
    return [
        asdict(row) | (marked if row.confidence == "given" else {}) for row in facts.prices.values()
    ]


def _assumptions(facts: Facts, _region: str) -> list[Row]:
    compilers = [one for one in COMPILERS.values() if not one.variant_of]
    assumed: list[tuple[str | None, Any]] = [
        *((one.name, row) for one in compilers for row in one.overheads),
        *((one.name, row) for one in compilers if (row := one.compute_speedup)),
        (None, facts.lower_precision),
    ]
    return [{"source": row.basis, "compiler": name, **asdict(row)} for name, row in assumed]


def _limits(_facts: Facts, _region: str) -> list[Row]:
    document = read("limits")
    request = [
        {"service": "CreateTrainingJob", "name": name.replace("_", " "), "value": value,
         "unit": None, "note": None, "source": document["source"], "as_of": document["as_of"]}
        for name, value in document["create_training_job"].items()
    ]  # fmt: skip
    return [*request, *document["rows"]]


def _equivalence(_facts: Facts, _region: str) -> list[Row]:
    document = read("equivalence")
    return [
        {"source": document["source"], **row, "as_of": row["date"],
         "rho": upper_bound(row["missed"], row["faults"])}
        for row in document["classes"]
    ]  # fmt: skip


def _rows_of(file: str, about: str) -> Topic:
    return Topic(about, file, lambda _facts, _region: list(read(file)["rows"]))


TOPICS: Mapping[str, Topic] = {
    "images": Topic("training images by framework", "framework_images", _images),
    "compiler": Topic("what the managed compiler exists for", "compiler_versions", _compiler),
    "instances": Topic("instance types and their GPUs", "instances", _instances),
    "models": Topic("batches that the managed compiler was tested with", "tested_models", _models),
    "prices": Topic("US dollars per hour of one instance, on demand", "prices", _prices),
    "assumptions": Topic("what is assumed until it is measured", "assumptions", _assumptions),
    "equivalence": Topic("faults that the equivalence check misses", "equivalence", _equivalence),
    "request-keys": _rows_of("request_keys", "what switches what on in a request"),
    "limits": Topic("limits of the services used", "limits", _limits),
    "lifecycle": _rows_of("lifecycle", "what is frozen, unpatched or removed"),
    "failures": _rows_of("failures", "how compiled jobs fail"),
    "gaps": _rows_of("sdk_gaps", "what the SDK lets through or refuses"),
}  # fmt: skip


def chosen(
    rows: Sequence[Mapping[str, Any]], filters: Mapping[str, str | None]
) -> list[Mapping[str, Any]]:
    """The rows that fit every filter (``framework``, ``instance`` …); None does not filter.

    Raises InvalidInputError where no row at all has one of the values.
    """
    chosen_rows = list(rows)
    for name, value in filters.items():
        if value is None:
            continue
        if not any(_fits(name, value, row) for row in rows):
            column = COLUMNS.get(name, name)
            values = {str(row[column]) for row in rows if row.get(column) is not None}
            raise _refused(name, value, sorted(values))
        chosen_rows = [row for row in chosen_rows if _fits(name, value, row)]
    return chosen_rows


def check_region(region: str, regions: Sequence[str]) -> None:
    """Raises InvalidInputError for a region that no registry serves."""
    if region not in regions:
        raise _refused("region", region, regions)


def _refused(name: str, value: str, values: Sequence[str]) -> InvalidInputError:
    near = difflib.get_close_matches(value, values, n=3, cutoff=0.4)
    shown = list(near or values)[:MOST_VALUES]
    more = "" if near or len(values) <= MOST_VALUES else f" and {len(values) - MOST_VALUES} more"
    hint = f"did you mean {', '.join(shown)}?" if near else f"there are {', '.join(shown)}{more}"
    return InvalidInputError("is not on file", field=f"--{name}", value=value, fix=hint)


def _fits(name: str, value: str, row: Mapping[str, Any]) -> bool:
    """Whether a row has what a filter asks for.

    A version is every release within it, an instance a type or all of a family: ``ml.g5.xlarge``,
    ``g5`` or ``ml.g5``.
    """
    held = row.get(COLUMNS.get(name, name))
    if name == "version":
        return any(matches(value, one) for one in row.get("versions_accepted") or [held])
    if name == "instance":
        return value == held or str(held).split(".")[1] == value.removeprefix("ml.")
    if name in CONTAINED:
        return value.casefold() in str(held).casefold()
    return value == held
