"""What was found as a page, for the person who pays."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.cli.common.outcome import saving_between
from compilegate.domain.economics import Range
from compilegate.domain.formats import UNKNOWN, count, money, percent, plural, shown, significant
from compilegate.report.markup import render_page
from compilegate.report.tables import Table
from compilegate.report.words import MetricCard

Document = Mapping[str, Any]
# A page stays below 400 kB; beside the first the rest is in discovered.json.
MOST_ROWS = 300
SHORT, LONG = 60, 200
COLUMNS = ("Workload", "Runs a week", "Hours", "Instances", "GPU busy", "USD a year",
           "Plausible saving", "What stops it, or is unknown")  # fmt: skip


def cells_of(row: Document) -> tuple[str, ...]:
    """A workload as the table of the screen has it."""
    return (
        row["name"],
        shown(row["usd_per_year"], money),
        saving_of(row),
        textwrap.shorten(why_of(row), SHORT, placeholder=" …"),
    )


def saving_of(row: Document) -> str:
    """The plausible saving a year."""
    saving = row["plausible_annual_saving_usd"]
    return saving_between(Range(*saving)) if saving else UNKNOWN


def why_of(row: Document) -> str:
    """What stops it; else why there are no dollars, or what is left to write."""
    if row["stopped_by"]:
        return str(row["stopped_by"]["message"])
    if row["unpriced"]:
        return f"no price of {', '.join(row['unpriced'])}"
    if row["usd_per_year"] is None:
        return f"{plural(row['runs'], 'run')} completed: too few to see a schedule"
    left = row["unknown"]
    return f"{plural(len(left), 'value')} to write: {', '.join(left)}" if left else ""


def guessed_note(rows: Sequence[Document]) -> str:
    """How much of the saving is of images whose framework nothing says."""
    savings = [row["plausible_annual_saving_usd"] for row in rows]
    most = money(sum(saving[1] for saving in savings if saving))
    return (
        f"up to {most} of the plausible saving is of {plural(len(rows), 'workload')} in images of "
        "your own, taken for PyTorch"
    )


def render(document: Document) -> str:
    """The page; the same document always gives the same bytes."""
    totals, rows = document["totals"], document["workloads"]
    saving = Range(*totals["plausible_annual_saving_usd"])
    more = len(rows) - MOST_ROWS
    values = {
        "workload": f"training of {', '.join(document['regions'])}",
        "stage": "",
        "simulated": document["simulated"],
        "label": "An estimate",
        "tone": "open",
        "headline": f"{money(totals['usd_per_year'])} a year for training, "
        f"{saving_between(saving)} of it might be saved",
        "lede": [
            f"{plural(totals['jobs'], 'training job')} since {document['since'][:10]} are runs of "
            f"{plural(len(rows), 'workload')}, without tuning and AutoML. A trial measures what "
            "a compiler saves; until then it is what published measurements make plausible.",
            *(f"{note[0].upper()}{note[1:]}." for note in document["notes"]),
        ],
        "metric_cards": [
            MetricCard("Training a year", money(totals["usd_per_year"]), "of workloads that go on"),
            MetricCard(
                "Plausible saving", saving_between(saving), "a year, where nothing stops it"
            ),
            MetricCard("May be tried", count(totals["may_be_tried"]), "workloads"),
            MetricCard("Stopped", count(totals["stopped"]), "workloads, by what the table says"),
        ],
        "not_measured": None if rows else "There is no training job since then.",
        "tables": [_workloads(rows, more), *_billed(document["billed"])] if rows else [],
        "downloads": [],
        "next": (f"compilegate check {document['folder']}", "each workload's answer, in full"),
    }
    return render_page("tables.html.j2", (), values)


def _workloads(rows: Sequence[Document], more: int) -> Table:
    lines = [
        (
            row["name"],
            shown(row["runs_per_week"], significant),
            shown(row["run_hours"], significant),
            f"{row['instance_count']} x {row['instance_type'] or UNKNOWN}",
            shown(row["gpu_utilization"], percent),
            shown(row["usd_per_year"], money),
            saving_of(row),
            textwrap.shorten(why_of(row), LONG, placeholder=" …"),
        )
        for row in rows[:MOST_ROWS]
    ]
    note = f"{plural(more, 'workload')} more in discovered.json." if more > 0 else ""
    return Table("workloads", "Workloads", COLUMNS, lines, note, stacked=True)


def _billed(rows: Sequence[Document]) -> list[Table]:
    """What the jobs come to at list prices beside what was billed, where that is known."""
    lines = [
        (row["instance_type"], money(row["listed_usd"]), money(row["billed_usd"])) for row in rows
    ]
    note = "They differ by discounts, savings plans, tuning jobs and days at either end."
    columns = ("Instance type", "At list prices", "In Cost Explorer")
    return [Table("billed", "Beside the bill", columns, lines, note)] if lines else []
