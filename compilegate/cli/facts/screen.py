"""Facts on a screen of 80 columns: a table per topic, then how old it is and from where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from compilegate.cli.common.template import show
from compilegate.domain.compilers.managed import MANAGED_COMPILER
from compilegate.facts.topics import OLD_DAYS, VERY_OLD_DAYS

Rows = Sequence[Mapping[str, Any]]
UNKNOWN = "-"
# Names to copy are never wrapped.
WHOLE = ("instance_type", "framework", "model")
MARKS = f"* over {OLD_DAYS} days old, ** over a year."
# Heading and column of the rows; numbers are set to the right.
COLUMNS: Mapping[str, Sequence[tuple[str, str]]] = {
    "images": (
        ("framework", "framework"), ("version", "version"), ("transformers", "transformers"),
        ("python", "python"), ("compiler", "compiler"), ("patched to", "patched_until"),
        ("not found", "not_found_on"),
    ),
    "compiler": (
        ("framework", "framework"), ("version", "version"), ("transformers", "transformers"),
        ("python", "python"), ("GPUs by", "multi_device"), ("regions", "regions"),
    ),
    "instances": (
        ("type", "instance_type"), ("GPUs", "gpus"), ("GPU", "gpu"), ("GiB each", "gpu_memory_gib"),
        ("bf16", "bf16"), ("fp8", "fp8"), ("EFA", "efa"), ("managed compiler", "managed_compiler"),
        ("quota", "quota"),
    ),
    "models": (
        ("model", "model"), ("instance", "instance_type"), ("length", "sequence_length"),
        ("batch", "native_batch"), ("compiled", "compiled_batch"), ("ratio", "batch_ratio"),
    ),
    "prices": (
        ("type", "instance_type"), ("USD/hour", "usd_per_hour"), ("confidence", "confidence"),
        ("region", "region"), ("as of", "as_of"),
    ),
    "assumptions": (
        ("compiler", "compiler"), ("family", "family"), ("warm s", "warm_seconds"),
        ("cold s", "cold_seconds"), ("low", "low"), ("high", "high"),
    ),
    "limits": (
        ("service", "service"), ("of", "name"), ("limit", "value"), ("unit", "unit"),
        ("note", "note"),
    ),
}  # fmt: skip
# Topics of text: the first line of a paragraph and those after it.
PROSE: Mapping[str, Sequence[str]] = {
    "request-keys": ("{switches}, {when}", "{place} {key}: {value}", "{note}"),
    "lifecycle": ("{subject}: {what} {date}", "{text}"),
    "failures": ("{where}: {message}", "it means: {cause}"),
    "gaps": ("{kind}: {text}",),
}
WORDS: Mapping[tuple[str, str], str] = {
    ("compiler", MANAGED_COMPILER): "managed",
    ("multi_device", "none"): "the script",
    ("multi_device", "launcher"): "a launcher",
}


def show_overview(rows: Sequence[Mapping[str, Any]]) -> None:
    """Topics with their rows, the oldest row's date and age, and the kind of source."""
    columns = ("topic", "rows", "as of", "days old", "undated", "from")
    cells = [
        (
            row["topic"], str(row["rows"]), row["as_of"]["oldest"] or UNKNOWN,
            _age(row["age_days"]), str(row["undated"] or ""), row["source_kind"],
        )
        for row in rows
    ]  # fmt: skip
    show("facts", {"columns": columns, "cells": cells}, marks=MARKS)


def show_topic(document: Mapping[str, Any], asked: str | None, *, addresses: bool) -> None:
    """The rows, what their words mean, their age and their sources.

    ``asked`` is the requested region, if any; that of the document is the one that jobs run in.
    """
    topic, rows = document["topic"], document["rows"]
    groups = [(heading, list(group)) for heading, group in groupby(rows, _heading(topic))]
    foreign = [row for row in rows if row.get("region") != document["region"]]
    show(
        "facts_topic", document,
        asked=asked,
        addresses=addresses and rows,
        prose=list(_prose(topic, rows)) if topic in PROSE else [],
        tables=[] if topic in PROSE else [_table(topic, *group) for group in groups],
        foreign=sum(not row.get("given") for row in foreign) if topic == "prices" else 0,
        dated=sorted((row["age_days"], row["as_of"]) for row in rows if row["as_of"] is not None),
        undated=sum(row["as_of"] is None and not row.get("given") for row in rows),
        sources=list(dict.fromkeys(str(row["source"]) for row in rows)),
        marks=MARKS, old_days=OLD_DAYS,
    )  # fmt: skip


def _prose(topic: str, rows: Rows) -> Iterator[tuple[str, list[str]]]:
    """Rows with the same start share it."""
    start, *rest = PROSE[topic]
    for head, group in groupby(rows, lambda row: _filled(start, row)):
        lines = [_filled(part, row) for row in group for part in rest]
        yield head, [line for line in lines if line]


def _filled(template: str, row: Mapping[str, Any]) -> str:
    """The template with the row's values; a missing value is left out."""
    cells = {key: "" if value is None else value for key, value in row.items()}
    return template.format_map(cells).rstrip(": ")


def _table(topic: str, heading: str, rows: Rows) -> dict[str, Any]:
    ages = {_cell(row, "age_days") for row in rows}
    age = [("days old", "age_days")] if len(ages) > 1 else []  # one age is shown below
    columns = [
        (title, column)
        for title, column in (*COLUMNS[topic], *age)
        if any(_cell(row, column) != UNKNOWN for row in rows)
    ]
    return {
        "heading": heading,
        "titles": [title for title, _ in columns],
        "cells": [[_cell(row, column) for _, column in columns] for row in rows],
        "right": [index for index, (_, column) in enumerate(columns) if _is_numeric(rows, column)],
        "whole": [index for index, (_, column) in enumerate(columns) if column in WHOLE],
    }


def _is_numeric(rows: Rows, column: str) -> bool:
    values = [_raw(row, column) for row in rows]
    return all(
        value is None or (isinstance(value, int | float | tuple) and not isinstance(value, bool))
        for value in values
    )


def _heading(topic: str) -> Callable[[Mapping[str, Any]], str]:
    """What rows of one table share; only the models have several tables."""

    def heading(row: Mapping[str, Any]) -> str:
        with_it = f", transformers {row['transformers']}" if row["transformers"] else ""
        return f"{row['framework']} {row['version']}{with_it}"

    return heading if topic == "models" else lambda _: ""


def _raw(row: Mapping[str, Any], column: str) -> Any:
    if column in ("bf16", "fp8"):
        return (row["gpu"] or {}).get(column)
    return row.get(column)


def _cell(row: Mapping[str, Any], column: str) -> str:
    value = _raw(row, column)
    if column == "age_days":
        return "given" if row.get("given") else _age(value)
    if value is None:
        return UNKNOWN
    if column == "gpu":
        name = str(value["name"]).removeprefix("NVIDIA ")
        return f"{name} (retired)" if row["retired"] else name
    if column == "batch_ratio":
        return f"{value:.2f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(len(value) if isinstance(value, tuple) else value)
    return WORDS.get((column, text), text)


def _age(days: int | None) -> str:
    if days is None:
        return "undated"
    return f"{days}{' **' if days > VERY_OLD_DAYS else ' *' if days > OLD_DAYS else ''}"
