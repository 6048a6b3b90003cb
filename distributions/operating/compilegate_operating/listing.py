"""``compilegate list``: every workload of a stage, chosen, in order, counted and added up."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.output import UNKNOWN, console, moves
from compilegate.cli.common.session import Invocation, on_cloud
from compilegate.domain.codec import write
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fleet.listing import (
    ANY,
    COLUMNS,
    MICRO,
    MOST_NAMED,
    STATES,
    URGENCY,
    Filters,
    Listing,
    Value,
    check_known,
    listing,
    state_of,
)
from compilegate.domain.fleet.row import NEEDS, PHASES, Row
from compilegate.domain.formats import count, duration, money, plural
from compilegate.domain.utc import iso
from compilegate.report.markup import csv_text
from compilegate.usecases.fleet.project import Fleet, read_fleet

TEMPLATES = Path(__file__).with_name("templates")
SHOWN = 20
NEEDS_A_PERSON = 11
WATCH_SECONDS = 10.0
HOURS_FROM, DAYS_FROM = 2 * 3600, 2 * 86_400
NUMBERS = ("saved_usd", "trial_usd", "runs", "failed", "instances")
TIMES = ("since", "last_run", "needs_since")
NOTHING = {UNKNOWN, "0"}
TITLES = {"saved_usd": "saved", "trial_usd": "trials", "needs_since": "for"}
# What a screen is given room for, in this order.
PRIORITY = (
    "needs", "state", "needs_since", "saved_usd", "owner", "phase", "failed", "runs", "last_run",
    "candidate", "instance",
)  # fmt: skip
GAP = 2
# What one long text of would take the room of other columns, and how much of it is shown then.
TO_CUT = ("owner", "candidate", "instance", "image", "family", "stale")
WIDEST = 20
# What helps with each need.
TO_DO = {
    "approve": 'flag approve WORKLOAD --reason "..."',
    "reverted": "report WORKLOAD --history",
    "unreadable": "flag history WORKLOAD",
    "stale": "run FILE",
    "slower_now": "run FILE",
    "failed": "status WORKLOAD",
    "not_read": "status WORKLOAD",
    "no_baseline": "status WORKLOAD",
    "lock_stays": 'unlock WORKLOAD --reason "..."',
}


def list_document(
    cloud: Cloud, fleet: Fleet, filters: Filters, *,
    sort: str = URGENCY, reverse: bool = False, limit: int | None = None,
) -> tuple[dict[str, Any], Listing]:  # fmt: skip
    """The document of ``list --json`` and what it is of; raises InvalidInputError."""
    now = cloud.services.clock.now()
    listed = listing(fleet.rows, filters, now, sort=sort, reverse=reverse, limit=limit)
    return {
        "stage": cloud.stage,
        "at": now,
        "filters": asdict(filters),
        "sort": sort,
        "workloads": len(fleet.rows),
        "building": len(fleet.building),
        "unread": list(fleet.unread),
        "rows": [
            {**write(row), "state": state_of(row), "due": [one.code for one in row.due(now)]}
            for row in listed.rows
        ],
        "more": listed.more,
        "counts": asdict(listed.counts),
        "totals": {
            **asdict(listed.totals), "saved_90_micro_usd": listed.totals.saved.interval_micro_usd,
        },
    }, listed  # fmt: skip


def cell(name: str, value: Value, now: float) -> str:
    """A column's value for people."""
    if value is None:
        return UNKNOWN
    if name in TIMES and not isinstance(value, str):
        age = max(now - value, 0)
        hours = f"{age / 3600:.0f} h" if age >= HOURS_FROM else duration(age)
        return hours if age < DAYS_FROM else f"{age / 86_400:.0f} d"
    if isinstance(value, str):
        return value.replace(" ", ", ") if name == "needs" else value
    return money(value) if name.endswith("_usd") else count(value)


def table(
    rows: Sequence[Row], columns: Sequence[str] | None, sort: str, now: float
) -> dict[str, Any]:
    """What say_table takes: these columns, else those that fit the screen."""
    cells = {
        name: [cell(name, COLUMNS[name](row, now), now) for row in rows]
        for name in columns or COLUMNS
    }
    if columns is None:
        cells |= {name: [_cut(text) for text in cells[name]] for name in TO_CUT}
        fitting = _fitting(cells, sort)
        cells = {name: of_rows for name, of_rows in cells.items() if name in fitting}
    return {
        "titles": [title(name) for name in cells],
        "cells": list(zip(*cells.values(), strict=True)),
        "right": [place for place, name in enumerate(cells) if name in NUMBERS],
    }


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _fitting(cells: Mapping[str, Sequence[str]], sort: str) -> Collection[str]:
    """The columns that the screen has room for, of those that say something; names always."""
    names = ("workload", *(name for name in (sort, *PRIORITY) if {*cells.get(name, ())} - NOTHING))
    room, kept = console().width + GAP, list[str]()
    for name in dict.fromkeys(names):
        width = max(map(len, (title(name), *cells[name]))) + GAP
        if width <= room or not kept:
            room, kept = room - width, [*kept, name]
    return kept


def title(name: str) -> str:
    """The heading of a column."""
    return TITLES.get(name, name.replace("_", " "))


def csv_of(listed: Listing, unread: Iterable[str], columns: Sequence[str], now: float) -> str:
    """The rows as CSV: money in USD, times in UTC, nothing where a value is unknown.

    What is ``unread`` has a line with its name and that state, whatever was chosen.
    """
    values = [{name: COLUMNS[name](row, now) for name in columns} for row in listed.rows]
    values += [{"workload": name, "state": "unread"} for name in unread]
    lines = [
        {name: iso(value) if name in TIMES and isinstance(value, int) else value
         for name, value in row.items() if name in columns}
        for row in values
    ]  # fmt: skip
    return csv_text(columns, lines) or f"{','.join(columns)}\n"


def screen_of(
    document: Mapping[str, Any], listed: Listing, cloud: Cloud,
    columns: Sequence[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What the screen of a document shows beside it."""
    now, interval = document["at"], document["totals"]["saved_90_micro_usd"]
    shown = {need.code for row in listed.rows for need in row.due(now)}
    return {
        "table": table(listed.rows, columns, document["sort"], now) if listed.rows else None,
        "to_do": [(code, cloud.command(TO_DO[code])) for code in NEEDS if code in shown],
        "saved_90_usd": [end / MICRO for end in interval],
        "most_named": MOST_NAMED,
        "register": cloud.command("register FILE"),
    }


@on_cloud
def list_workloads(
    invocation: Invocation,
    *,
    owner: Annotated[
        list[str] | None, typer.Option("--owner", help='Only this owner\'s; "": without one.')
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", help=f"Of the flag: {', '.join(STATES)}.")
    ] = None,
    phase: Annotated[
        list[str] | None, typer.Option("--phase", help=f"Of the trial: {', '.join(PHASES)}.")
    ] = None,
    need: Annotated[
        list[str] | None,
        typer.Option("--need", help=f"What a person has to see to: {ANY}, {', '.join(NEEDS)}."),
    ] = None,
    instance: Annotated[
        list[str] | None, typer.Option("--instance", help="A type or a family: ml.g5.xlarge or g5.")
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only those that have changed since the proof.")
    ] = False,
    sort: Annotated[
        str, typer.Option("--sort", metavar="COLUMN", help="A column, or urgency.")
    ] = URGENCY,
    reverse: Annotated[bool, typer.Option("--reverse", help="In the opposite order.")] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="A,B,…",
            help=f"Default: what fits the screen. There are {', '.join(COLUMNS)}.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help=f"Default: {SHOWN}; all with --json or --csv."),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again every 10 seconds, on a terminal.")
    ] = False,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="Exit with 11 where a workload needs a person."),
    ] = False,
) -> None:
    """List workloads, what needs a person first.

    Counts and sums are of every workload that the filters take. An option with several values is
    repeated.

    \b
    compilegate list
    compilegate list --owner nlp --state stale --state reverted
    compilegate list --need any --exit-code
    compilegate list --sort saved_usd --limit 50
    compilegate list --columns workload,owner,image,stale --csv > fleet.csv

    With --exit-code, exit code 11 where one of them needs a person, or is not known: its row
    cannot be read or is being built.
    """
    chosen = [one.strip() for one in columns.split(",")] if columns is not None else None
    check_known("--columns", chosen or (), COLUMNS)
    if [as_csv, invocation.as_json, watch].count(True) > 1:
        raise InvalidInputError(
            "exclude each other", field="--json, --csv and --watch", fix="choose one"
        )
    if columns is not None and invocation.as_json:
        raise InvalidInputError(
            "excludes --json", field="--columns", fix="leave it out: a row has all of them"
        )
    if watch and not moves(console()):
        raise InvalidInputError(
            "needs a terminal", field="--watch", fix="run the command again for each reading"
        )
    whole = as_csv or invocation.as_json
    filters = Filters(
        tuple(owner or ()), tuple(state or ()), tuple(phase or ()), tuple(need or ()),
        tuple(instance or ()), stale,
    )  # fmt: skip
    cloud = invocation.open_records()
    while True:
        document, listed = list_document(
            cloud, read_fleet(cloud.services), filters, sort=sort, reverse=reverse,
            limit=limit if limit is not None or whole else SHOWN,
        )  # fmt: skip
        if watch:
            console().clear()
        if as_csv:
            text = csv_of(listed, document["unread"], chosen or list(COLUMNS), document["at"])
            typer.echo(text, nl=False)
            if document["building"]:
                missing = plural(document["building"], "workload")
                typer.echo(f"Rows of {missing} are being built; the CSV is without them.", err=True)
        else:
            invocation.answer(
                document, TEMPLATES / "list", **screen_of(document, listed, cloud, chosen)
            )
        if not watch:
            break
        time.sleep(WATCH_SECONDS)
    unknown = document["building"] or document["unread"]
    if exit_code and (listed.counts.need_a_person or unknown):
        raise typer.Exit(NEEDS_A_PERSON)
