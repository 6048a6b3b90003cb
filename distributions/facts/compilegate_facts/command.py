"""``compilegate facts``: facts with their source and age, and a refresh of them from AWS."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common import project
from compilegate.cli.common.help_layout import CommandGroup
from compilegate.cli.common.output import UNKNOWN, answer, waiting
from compilegate.cli.common.session import JsonOption, session
from compilegate.domain.compilers import COMPILERS
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.domain.formats import plural
from compilegate.facts import FILE, laid_over, load_facts, read_refreshed
from compilegate_facts.refresh import PARTS, ask, changes, merged, refreshed_body
from compilegate_facts.topics import (
    OLD_DAYS,
    TOPICS,
    VERY_OLD_DAYS,
    Row,
    check_region,
    chosen,
    overview,
    with_age,
)

Rows = Sequence[Mapping[str, Any]]
# Help, options and columns of each topic.
SCREENS = tomllib.loads(Path(__file__).with_name("screens.toml").read_text(encoding="utf-8"))
TEMPLATES = Path(__file__).with_name("templates")
MARKS = f"* over {OLD_DAYS} days old, ** over a year."
# Names to copy are never wrapped.
WHOLE = ("instance_type", "framework", "model")
DECIMALS = {"batch_ratio": 2, "rho": 3}
NEW_KINDS = ("price", "quota", "spot quota")
UNTRIED = (
    "This command follows AWS's documentation and botocore's models; its authors have not run it "
    "against AWS. Compare a price and a quota with the console before you rely on them."
)

app = typer.Typer(cls=CommandGroup, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def facts(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """Show dated facts: images, instances, prices, limits.

    Every row has a source and a date. Needs no account. Without a topic, shows an overview.
    `refresh` reads prices, images and quotas from an AWS account.

    \b
    compilegate facts
    compilegate facts images --framework pytorch --version 2.8 --region eu-west-1
    compilegate facts models --model bert --instance g5
    compilegate facts prices --json
    compilegate facts refresh --dry-run
    """
    if ctx.invoked_subcommand:
        return
    document, rows_of = _here(None)
    today = date.fromisoformat(document["today"])
    document["topics"] = [overview(name, rows_of(name), today) for name in TOPICS]
    cells = [
        (
            row["topic"], str(row["rows"]), row["as_of"]["oldest"] or UNKNOWN,
            _age(row["age_days"]), str(row["undated"] or ""), row["source_kind"],
        )
        for row in document["topics"]
    ]  # fmt: skip
    answer(document, TEMPLATES / "facts", as_json=as_json, cells=cells, marks=MARKS)


def _here(region: str | None) -> tuple[dict[str, Any], Callable[[str], list[Row]]]:
    """Region and day of a document, and what gives a topic's rows there as of that day.

    The facts of cdk.json lie over the shipped ones.
    """
    settings = project.settings()
    where = _known_region(region) or settings.region
    merged, today = load_facts(where).overridden(settings.facts), datetime.now(tz=UTC).date()
    return {"region": where, "today": str(today)}, lambda topic: with_age(
        TOPICS[topic].rows(merged, where), today
    )


def _known_region(region: str | None) -> str | None:
    """The region; raises InvalidInputError where no registry of images serves it."""
    if region:
        registries = load_facts().registries.values()
        check_region(region, sorted({name for one in registries for name in one.accounts}))
    return region


def _topic_command(topic: str, screen: Mapping[str, Any]) -> Callable[..., None]:
    """A function with the topic's options as parameters, for Typer to read."""

    def command(*, as_json: bool, **options: Any) -> None:
        region = options.pop("region", None)
        document, rows_of = _here(region)
        option, column = screen.get("requires", ("", ""))
        required = region if option == "region" else options.pop(option, False)
        rows = chosen(rows_of(topic), options)
        if required:
            rows = [row for row in rows if row[column]]
        answer(
            {"topic": topic, **document, "rows": rows}, TEMPLATES / "facts_topic", as_json=as_json,
            asked=region, addresses=required and column == "uri" and rows,
            prose=list(_prose(screen["prose"], rows)) if "prose" in screen else [],
            tables=list(_tables(topic, screen["columns"], rows)) if "columns" in screen else [],
            marks=MARKS, old_days=OLD_DAYS,
        )  # fmt: skip

    own_images = " or ".join(["none", *(one.name for one in COMPILERS.values() if one.own_image)])
    parameters = []
    for name in screen["options"]:
        kind, default = (bool, False) if name == "managed_compiler" else (str | None, None)
        meaning = SCREENS["options"][name].format(compilers=own_images)
        option = typer.Option(f"--{name.replace('_', '-')}", help=meaning)
        parameters.append(_parameter(name, Annotated[kind, option], default=default))
    parameters.append(_parameter("as_json", JsonOption, default=False))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameter(name: str, annotation: Any, *, default: bool | None) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _prose(parts: Sequence[str], rows: Rows) -> Iterator[tuple[str, list[str]]]:
    """Paragraphs; rows with the same start share it, and a missing value is left out."""

    def filled(part: str, row: Mapping[str, Any]) -> str:
        cells = {key: "" if value is None else value for key, value in row.items()}
        return part.format_map(cells).rstrip(": ")

    start, *rest = parts
    for head, group in groupby(rows, lambda row: filled(start, row)):
        yield head, [line for row in group for part in rest if (line := filled(part, row))]


def _tables(topic: str, columns: Sequence[tuple[str, str]], rows: Rows) -> Iterator[dict[str, Any]]:
    """A table; of the models one for each framework, under its name."""

    def heading(row: Mapping[str, Any]) -> str:
        with_it = f", transformers {row['transformers']}" if row["transformers"] else ""
        return f"{row['framework']} {row['version']}{with_it}"

    for name, group in groupby(rows, heading if topic == "models" else lambda _: ""):
        yield {"heading": name, **_table(columns, [_on_screen(row) for row in group])}


def _on_screen(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its GPU's precisions as columns, and its GPU as a name."""
    gpu = row.get("gpu")
    if not isinstance(gpu, Mapping):
        return {**row}
    name = str(gpu["name"]).removeprefix("NVIDIA ")
    return {**row, **gpu, "gpu": f"{name} (retired)" if row["retired"] else name}


def _table(columns: Sequence[tuple[str, str]], rows: Rows) -> dict[str, Any]:
    """The columns that any row has a value of; those of numbers are set to the right."""
    if len({_cell(row, "age_days") for row in rows}) > 1:  # one age is shown below
        columns = [*columns, ("days old", "age_days")]
    cells = {column: [_cell(row, column) for row in rows] for _, column in columns}
    shown = [(title, column) for title, column in columns if {*cells[column]} != {UNKNOWN}]
    return {
        "titles": [title for title, _ in shown],
        "cells": list(zip(*(cells[column] for _, column in shown), strict=True)),
        "right": [
            index for index, (_, column) in enumerate(shown)
            if all(_is_number(row.get(column)) for row in rows)
        ],
        "whole": [index for index, (_, column) in enumerate(shown) if column in WHOLE],
    }  # fmt: skip


def _is_number(value: Any) -> bool:
    """Whether a number is shown, as of a list its length; what is unknown disturbs none."""
    return value is None or (isinstance(value, int | float | tuple) and not isinstance(value, bool))


def _cell(row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if column == "age_days":
        return "given" if row.get("given") else _age(value)
    if value is None:
        return UNKNOWN
    if column in DECIMALS:
        return f"{value:.{DECIMALS[column]}f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(len(value) if isinstance(value, tuple) else value)
    return str(SCREENS["words"].get(column, {}).get(text, text))


def _age(days: int | None) -> str:
    if days is None:
        return "undated"
    if days > VERY_OLD_DAYS:
        return f"{days} **"
    return f"{days} *" if days > OLD_DAYS else str(days)


@app.command("refresh")
def refresh(
    ctx: typer.Context,
    *,
    region: Annotated[
        str | None,
        typer.Option("--region", help="Default: the environment's, else the one in cdk.json."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help=f"One of {', '.join(PARTS)}; repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change and write nothing.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", show_default=False, help="Write to another file.")
    ] = FILE,
    as_json: JsonOption = False,
) -> None:
    """Read prices, images and quotas of a region from AWS.

    Reads training prices (Price List API), whether each image is in its registry (DescribeImages),
    and the account's training quotas (Service Quotas), and keeps them in refreshed.json. The file
    overrides the shipped facts of that region; commit and deploy it so that the functions use it.
    Parts that AWS refuses are reported and stay unchanged.

    Written from AWS's documentation; not yet run against AWS.

    \b
    compilegate facts refresh --dry-run
    compilegate facts refresh --region eu-west-1 --only prices --only quotas

    Exit code 1 when nothing could be read.
    """
    for part in only or ():
        if part not in PARTS:
            fix = f"use one of {', '.join(PARTS)}"
            raise InvalidInputError("is not a part", field="--only", value=part, fix=fix)
    parts = [part for part in PARTS if not only or part in only]
    settings = project.settings()
    where = _known_region(region) or settings.region
    kept, clients = read_refreshed(out), session(ctx).providers.client
    before = laid_over(load_facts(), kept, where)
    day = datetime.now(tz=UTC).date().isoformat()
    with waiting(f"Asking AWS about {', '.join(parts)} in {where}"):
        answers = ask(before, where, clients, parts=parts, day=day)
    if not answers.rows:
        reasons = "; ".join(f"{part}: {why}" for part, why in answers.not_read.items())
        raise EnvironmentNotReadyError(f"nothing could be read: {reasons}")
    priced = {row["instance_type"] for row in answers.rows.get("prices", [])}
    if both := sorted(priced & set(settings.facts.prices)):
        answers.notes.append(f"cdk.json's own price overrides the list's: {', '.join(both)}")
    written = merged(kept, where, answers.rows)
    differences = changes(before, laid_over(load_facts(), written, where))
    if not dry_run:
        write_whole(out, refreshed_body(written))
    listed = [row for row in differences if row["part"] == "image" or row["old"] is not None]
    new = [str(row["part"]) for row in differences if row not in listed]
    words = {True: "there", False: "not there", None: UNKNOWN}
    answer(
        {
            "region": where, "file": None if dry_run else str(out), "changes": differences,
            "read": {part: len(rows) for part, rows in answers.rows.items()},
            "not_read": answers.not_read, "notes": answers.notes, "untried": UNTRIED,
        },
        TEMPLATES / "facts_refresh", as_json=as_json,
        cells=[
            (row["part"], row["what"], *(
                words[value] if value is None or isinstance(value, bool) else str(value)
                for value in (row["old"], row["new"])
            ))
            for row in listed
        ],
        new=[plural(new.count(kind), kind) for kind in NEW_KINDS if kind in new],
    )  # fmt: skip


for _name, _screen in SCREENS["topics"].items():
    app.command(_name, help=_screen["help"])(_topic_command(_name, _screen))
