"""``compilegate facts``: facts with their source and age."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Annotated, Any

import typer

from compilegate.cli.common import project
from compilegate.cli.common.help import CommandGroup
from compilegate.cli.common.output import emit_json
from compilegate.cli.common.session import JsonOption
from compilegate.cli.common.template import show
from compilegate.cli.facts_refresh import check_known_region, refresh
from compilegate.domain.compilers import COMPILERS, has_own_image
from compilegate.domain.compilers.managed import MANAGED_COMPILER
from compilegate.facts import load_facts
from compilegate.facts.topics import (
    OLD_DAYS,
    TOPICS,
    VERY_OLD_DAYS,
    Row,
    chosen,
    overview,
    with_age,
)

# Facts on a screen of 80 columns: a table per topic, then how old it is and from where.

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


app = typer.Typer(cls=CommandGroup, rich_markup_mode=None)
app.command("refresh")(refresh)

# Help of each option; all but --region and --managed-compiler filter the rows by their values.
OPTIONS = {
    "framework": "For example pytorch.",
    "version": "The framework's; 2.1 is every 2.1.x.",
    "compiler": f"{' or '.join(['none', *filter(has_own_image, COMPILERS)])}.",
    "instance": "A type or a family: ml.g5.xlarge or g5.",
    "model": "Part of its name, for example bert.",
    "confidence": "given, list, high, medium or low.",
    "switches": "What it turns on, for example pytorchxla.",
    "service": "For example CreateTrainingJob.",
    "subject": "For example PyTorch.",
    "where": "container, training or api.",
    "kind": "accepted, rejected or documentation.",
    "region": "An AWS region. Default: the environment's, else the one in cdk.json.",
    "managed_compiler": "Only types that it accepts.",
}


@dataclass(frozen=True)
class TopicCommand:
    """One topic's command; ``requires`` is the column that an option's rows must have."""

    help: str
    options: Sequence[str] = ()
    requires: tuple[str, str] | None = None


COMMANDS = {
    "images": TopicCommand(
        """Show training images, your own first.

        With --region, shows their URIs in that region.

        \b
        compilegate facts images --framework huggingface-pytorch
        compilegate facts images --framework pytorch --region eu-west-1
        """,
        ("framework", "version", "compiler", "region"),
        requires=("region", "uri"),
    ),
    "compiler": TopicCommand(
        """Show versions with SageMaker Training Compiler.

        With --region, shows only those in that region.

        \b
        compilegate facts compiler --framework pytorch
        compilegate facts compiler --region us-gov-west-1
        """,
        ("framework", "version", "region"),
        requires=("region", "in_region"),
    ),
    "instances": TopicCommand(
        """Show instance types: GPUs, memory, precisions, quotas.

        Also EFA and retirement. Quotas appear once `refresh` has read them.

        \b
        compilegate facts instances --instance g5
        compilegate facts instances --managed-compiler
        """,
        ("instance", "managed_compiler", "region"),
        requires=("managed_compiler", "managed_compiler"),
    ),
    "models": TopicCommand(
        """Show the largest batches tested with the managed compiler.

        Batches that AWS tested, not speeds: a ratio below 1 means that the compiled model fits
        fewer samples.

        \b
        compilegate facts models --model bert-base --instance g5
        compilegate facts models --framework huggingface-tensorflow --json
        """,
        ("framework", "version", "model", "instance"),
    ),
    "prices": TopicCommand(
        """Show prices per hour on demand, with their confidence.

        US dollars per instance. given = in cdk.json; list = AWS's price list, read by `refresh`;
        high = two public sources agree; medium = one; low = old, inferred or of a retired type.

        \b
        compilegate facts prices --instance p4d
        compilegate facts prices --confidence low
        """,
        ("instance", "confidence", "region"),
    ),
    "assumptions": TopicCommand(
        """Show what is assumed of a compiler before a trial.

        What a workload's own trial measures replaces the assumption.

        \b
        compilegate facts assumptions --json
        """
    ),
    "request-keys": TopicCommand(
        """Show the request keys that turn on compiler and launchers.

        The keys are those of CreateTrainingJob.

        \b
        compilegate facts request-keys --switches smddp
        """,
        ("switches",),
    ),
    "limits": TopicCommand(
        """Show limits of the services used.

        \b
        compilegate facts limits --service "Step Functions"
        """,
        ("service",),
    ),
    "lifecycle": TopicCommand(
        """Show what is frozen, unpatched, retired or removed.

        \b
        compilegate facts lifecycle --subject "managed compiler"
        """,
        ("subject",),
    ),
    "failures": TopicCommand(
        """Show how jobs with the managed compiler fail, and why.

        \b
        compilegate facts failures --where container
        """,
        ("where",),
    ),
    "gaps": TopicCommand(
        """Show what the SageMaker SDK or its documentation gets wrong.

        What the SDK accepts or rejects wrongly, and errors of the documentation.

        \b
        compilegate facts gaps --kind accepted
        """,
        ("kind",),
    ),
}


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
    if ctx.invoked_subcommand is not None:
        return
    document, rows_of = _here(None)
    today = date.fromisoformat(document["today"])
    document["topics"] = [overview(name, rows_of(name), today) for name in TOPICS]
    if as_json:
        emit_json(document)
    else:
        show_overview(document["topics"])


def _here(region: str | None) -> tuple[dict[str, Any], Callable[[str], list[Row]]]:
    """Region and day of a document, and what gives a topic's rows there as of that day.

    By default of the environment's region, else of cdk.json's, whose own facts lie over the
    shipped ones. Raises InvalidInputError for a region that no registry of images serves.
    """
    settings = project.settings()
    where = check_known_region(region) if region else settings.region
    facts, today = load_facts(where).overridden(settings.facts), datetime.now(tz=UTC).date()
    return {"region": where, "today": str(today)}, lambda topic: with_age(
        TOPICS[topic].rows(facts, where), today
    )


def _topic_command(topic: str, described: TopicCommand) -> Callable[..., None]:
    """A function with the topic's options as parameters, for Typer to read."""

    def command(*, as_json: bool, **options: Any) -> None:
        region = options.pop("region", None)
        document, rows_of = _here(region)
        option, column = described.requires or ("", "")
        required = region if option == "region" else options.pop(option, False)
        rows = chosen(rows_of(topic), options)
        if required:
            rows = [row for row in rows if row[column]]
        document = {"topic": topic, **document, "rows": rows}
        if as_json:
            emit_json(document)
        else:
            show_topic(document, region, addresses=bool(required) and column == "uri")

    parameters = []
    for name in described.options:
        kind, default = (bool, False) if name == "managed_compiler" else (str | None, None)
        option = typer.Option(f"--{name.replace('_', '-')}", help=OPTIONS[name])
        parameters.append(_parameter(name, Annotated[kind, option], default=default))
    parameters.append(_parameter("as_json", JsonOption, default=False))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameter(name: str, annotation: Any, *, default: bool | None) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


for _name, _described in COMMANDS.items():
    app.command(_name, help=_described.help)(_topic_command(_name, _described))
