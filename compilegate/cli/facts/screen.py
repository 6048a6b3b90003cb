"""Facts on a screen of 80 columns: a table per topic, then how old it is and from where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from compilegate.cli.common.output import say, say_line
from compilegate.cli.common.tables import say_table
from compilegate.domain.compilers.managed import MANAGED_COMPILER
from compilegate.domain.formats import plural
from compilegate.facts.topics import OLD_DAYS, VERY_OLD_DAYS

UNKNOWN = "-"
MOST_SOURCES = 4
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
NOTES = {
    "models": "Largest batch per GPU in mixed precision, not speed. A ratio below 1 is a smaller "
    "batch.",
    "prices": "list = AWS's price list, read by `facts refresh`; high = two public sources agree; "
    "medium = one; low = old, inferred or of a retired type; given = in cdk.json.",
    "compiler": "Frozen: no new releases, and AWS no longer patches its images; see "
    "compilegate facts lifecycle. Supported instance types: compilegate facts instances "
    "--managed-compiler.",
    "images": "Patched to: the last day on which AWS patches the image; - if not published.",
    "failures": "The container's messages are from a later toolkit than that in the images.",
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
    say_table(columns, cells, right=(1, 3, 4))
    say()
    say(f'"As of" and "days old" refer to the oldest row. {MARKS}')
    say("Details: compilegate facts TOPIC. From your account: compilegate facts refresh.")


def show_topic(
    topic: str,
    rows: Sequence[Mapping[str, Any]],
    region: str | None,
    *,
    home: str,
    addresses: bool,
) -> None:
    """The rows, what their words mean, their age and their sources.

    ``region`` is the requested one, if any; ``home`` the one that jobs run in.
    """
    if not rows:
        say(f"No row matches{f' in {region}' if region else ''}.")
        return
    if topic in PROSE:
        _paragraphs(topic, rows)
        say()
    elif topic == "models":
        for heading, group in groupby(rows, _heading):
            say(heading, "bold")
            _table(topic, list(group))
            say()
    else:
        _table(topic, rows)
        say()
    if addresses:
        say(f"In {region}:")
        for row in rows:
            say_line(f"  {row['uri']}")
        say()
    if topic in NOTES:
        say(NOTES[topic])
    if topic == "prices":
        _other_regions(rows, home)
    say(_ages(rows))
    _sources(rows)


def _other_regions(rows: Sequence[Mapping[str, Any]], home: str) -> None:
    foreign = sum(row["region"] != home and not row.get("given") for row in rows)
    if foreign:
        say(
            f"{foreign} of {len(rows)} may not be prices of {home}: read yours with "
            "compilegate facts refresh, or set them in cdk.json."
        )


def _paragraphs(topic: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with the same start share it."""
    start, *rest = PROSE[topic]
    for head, group in groupby(rows, lambda row: _filled(start, row)):
        say(f"- {head}", hang=2)
        for row in group:
            for line in filter(None, (_filled(part, row) for part in rest)):
                say(line, indent=2, hang=2)


def _filled(template: str, row: Mapping[str, Any]) -> str:
    """The template with the row's values; a missing value is left out."""
    cells = {key: "" if value is None else value for key, value in row.items()}
    return template.format_map(cells).rstrip(": ")


def _table(topic: str, rows: Sequence[Mapping[str, Any]]) -> None:
    ages = {_cell(row, "age_days") for row in rows}
    age = [("days old", "age_days")] if len(ages) > 1 else []  # one age is shown below
    columns = [
        (title, column)
        for title, column in (*COLUMNS[topic], *age)
        if any(_cell(row, column) != UNKNOWN for row in rows)
    ]
    say_table(
        [title for title, _ in columns],
        [[_cell(row, column) for _, column in columns] for row in rows],
        right=[index for index, (_, column) in enumerate(columns) if _is_numeric(rows, column)],
        whole=[index for index, (_, column) in enumerate(columns) if column in WHOLE],
        gap=1,
    )


def _is_numeric(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    values = [_raw(row, column) for row in rows]
    return all(
        value is None or (isinstance(value, int | float | tuple) and not isinstance(value, bool))
        for value in values
    )


def _heading(row: Mapping[str, Any]) -> str:
    with_transformers = f", transformers {row['transformers']}" if row["transformers"] else ""
    return f"{row['framework']} {row['version']}{with_transformers}"


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


def _ages(rows: Sequence[Mapping[str, Any]]) -> str:
    dated = sorted((row["age_days"], row["as_of"]) for row in rows if row["as_of"] is not None)
    undated = sum(row["as_of"] is None and not row.get("given") for row in rows)
    parts = [f"{plural(len(rows), 'row')}."]
    if dated:
        days, day = dated[-1]
        parts.append(f"Oldest of {day}, {plural(days, 'day')} ago.")
        parts += [MARKS] if days > OLD_DAYS else []
    if undated:
        parts.append(f"{undated} undated.")
    return " ".join(parts)


def _sources(rows: Sequence[Mapping[str, Any]]) -> None:
    sources = list(dict.fromkeys(str(row["source"]) for row in rows))
    if len(sources) > MOST_SOURCES:
        say(f"From {len(sources)} sources; --json names each row's.")
        return
    for source in sources:
        say(f"From: {source}", hang=2)
