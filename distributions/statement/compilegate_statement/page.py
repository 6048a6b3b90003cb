"""A month's statement as a page and as CSV, from its document (statement.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from shlex import quote
from typing import Any

from compilegate.domain.claims import Label, command_at
from compilegate.domain.formats import UNKNOWN, dollars, plural
from compilegate.report.markup import Download, csv_text, paragraphs, render_page, rows
from compilegate.report.tables import Table
from compilegate_statement.statement import FINAL, UNREAD

TEMPLATES = Path(__file__).with_name("templates")
Document = Mapping[str, Any]
# Names of unread workloads in a sentence, and rows of a table; a page stays below 400 kB.
MOST_NAMES, MOST_ROWS = 20, 500
LABELS = {True: Label("Final", "good"), False: Label("Provisional", "open")}
NO_OWNER = "without an owner"
PART = "*"
INCOMPLETE = Label("Incomplete", "bad")
COLUMNS = ("Spent on trials", "Saved", "90% interval", "Net", "Holdback")


def statement_csv(statement: Document) -> str:
    """A row for each workload, also for those that could not be read.

    Each amount is there in whole micro-dollars and in dollars.
    """
    about = {"month": statement["month"], "state": statement["state"]}
    columns = [*about, "workload", "owner", *dict(_cells(statement["total"]))]
    lines = [{**about, **dict(_cells(one))} for one in statement["workloads"]]
    lines += [{**about, "state": UNREAD, "workload": name} for name in statement["unread"]]
    return csv_text(columns, lines) or f"{','.join(columns)}\n"


def _cells(line: Document, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in line.items():
        if isinstance(value, Mapping):
            yield from _cells(value, f"{prefix}{key}_")
        elif key != "workloads":
            yield prefix + key, value
            if key.endswith("micro_usd"):
                yield (
                    prefix + key.replace("micro_usd", "usd"),
                    (None if value is None else Decimal(value).scaleb(-6)),
                )


def remarks(statement: Document) -> list[str]:
    """What the sums are of and what they lack, a sentence or two each."""
    return paragraphs(TEMPLATES / "statement_remarks", statement=statement, most=MOST_NAMES)


def whose(statement: Document) -> str:
    """Which workloads it is of."""
    owner = statement["owner"]
    if owner is None:
        return "all workloads"
    return f"workloads of {owner}" if owner else f"workloads {NO_OWNER}"


def render_statement(statement: Document) -> str:
    """The page; the same document always gives the same bytes."""
    total, month, owner = statement["total"], statement["month"], statement["owner"]
    lacks = statement["unread"] or total["unread_entries"]
    label = INCOMPLETE if lacks else LABELS[statement["state"] == FINAL]
    csv = statement_csv(statement)
    csv_command = f"compilegate statement --month {month} --csv"
    if owner is not None:
        csv_command += f" --owner {quote(owner)}"
    values = {
        "workload": whose(statement),
        "stage": statement["stage"],
        "simulated": statement["simulated"],
        "label": label.text,
        "tone": label.tone,
        "headline": f"{month}: {dollars(total['net']['micro_usd'])} net",
        "lede": remarks(statement),
        "metric_cards": [],
        "not_measured": None,
        "tables": [_lines(total), owners_table(statement), _workloads(statement)],
        "downloads": [Download.of("Workloads", f"statement-{month}.csv", csv, place="--csv")],
        "next": (command_at(csv_command, statement["stage"]), "every figure, unrounded"),
    }
    return render_page("tables.html.j2", (), values)


def _lines(total: Document) -> Table:
    """Each line of the statement with what it is."""
    columns = ("Line", "Amount", "90% interval", "Over", "What it is")
    lines = []
    for name, key, unit, meaning in rows(TEMPLATES / "statement_lines"):
        of = total[key]
        counted = of.get("runs", of.get("entries"))
        over = UNKNOWN if counted is None else plural(counted, unit)
        lines.append((name, _dollars(of), _interval(of), over, meaning))
    note = f"Rounded to cents; {UNKNOWN} where there is nothing to estimate, or to count."
    return Table("lines", "Statement", columns, lines, note, stacked=True)


def _interval(figures: Document) -> str:
    if figures.get("low_micro_usd") in (None, figures["micro_usd"]):
        return UNKNOWN
    return f"{dollars(figures['low_micro_usd'])} to {dollars(figures['high_micro_usd'])}"


def owners_table(statement: Document) -> Table:
    """The sums of each owner."""
    lines = [
        (one["owner"] or NO_OWNER, str(one["workloads"]), *_amounts(one))
        for one in statement["owners"]
    ]
    return Table("owners", "Owners", ("Owner", "Workloads", *COLUMNS), lines, stacked=True)


def _workloads(statement: Document) -> Table:
    """Those that saved or cost most; all of them are in the CSV."""
    largest = sorted(statement["workloads"], key=lambda one: -abs(one["net"]["micro_usd"] or 0))
    lines = [
        (one["workload"], one["owner"] or NO_OWNER, *_amounts(one)) for one in largest[:MOST_ROWS]
    ]
    more = len(largest) - len(lines)
    note = f"{plural(more, 'workload')} more, of smaller amounts, in the CSV." if more else ""
    columns = ("Workload", "Owner", *COLUMNS)
    return Table("workloads", "Workloads", columns, lines, note, stacked=True)


def _amounts(line: Document) -> tuple[str, ...]:
    spent, saved, net, holdback = (
        _dollars(line[key]) for key in ("spent", "saved", "net", "holdback")
    )
    return spent, saved, _interval(line["saved"]), net, holdback


def _dollars(of: Document) -> str:
    """An amount, marked where it lacks what is not known."""
    is_part = of["micro_usd"] is not None and of["unknown"] > 0
    return f"{dollars(of['micro_usd'])}{PART if is_part else ''}"
