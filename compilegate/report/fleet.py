"""All production workloads of a stage on one page: what was saved, how each stands, what to do."""

from __future__ import annotations

from markupsafe import Markup

from compilegate.domain.claims import FLAG_STATES, Label, command_at
from compilegate.domain.formats import UNKNOWN, money, plural, shown
from compilegate.domain.production.summaries import Fleet, WorkloadWeek
from compilegate.domain.workload.model import BASELINE
from compilegate.report.markup import Row, command, paragraphs, render_page, rows
from compilegate.report.tables import Table
from compilegate.report.words import MetricCard

# A row takes about 500 bytes; with as many the page stays below 400 kB.
MOST_ROWS = 500
DUE = Label("Needs attention", "bad")
IN_ORDER = Label("In order", "good")
COLUMNS = (
    "Workload", "Owner", "Flag", "Candidate", "Runs in 7 days", "Failed", "Saved so far",
    "Trials expected", "To do or under way",
)  # fmt: skip


def render_fleet(fleet: Fleet) -> str:
    """The page; the same summaries always give the same bytes."""
    # The most urgent of each: how urgent it is, the command for it, and what it is.
    tasks = {
        one.workload: next(iter(rows("fleet_task", one=one)), (0, "", ""))
        for one in fleet.summaries
    }
    due = sum(urgency > 0 for urgency, _, _ in tasks.values())
    on = sum(one.enabled for one in fleet.summaries)
    headline, *lede = paragraphs("fleet_lede", fleet=fleet, on=on, due=due, most=MOST_ROWS)
    runs = sum(sum(one.runs.values()) for one in fleet.summaries)
    label = DUE if due or fleet.unread else IN_ORDER
    values = {
        "workload": "all workloads",
        "stage": fleet.stage,
        "simulated": fleet.simulated,
        "label": label.text,
        "tone": label.tone,
        "headline": headline,
        "lede": lede,
        "metric_cards": [
            MetricCard(*row) for row in rows("fleet_cards", fleet=fleet, runs=runs, due=due)
        ],
        "not_measured": None if fleet.summaries else "No workload is registered for production.",
        "tables": _tables(fleet, tasks),
        "downloads": [],
        "next": (command_at("compilegate status", fleet.stage), "what runs at this moment"),
    }
    return render_page("tables.html.j2", (), values)


def _tables(fleet: Fleet, tasks: dict[str, Row]) -> list[Table]:
    """What a person has to do first, the most urgent of it at the top, then by saving."""
    if not fleet.summaries:
        return []
    ordered = sorted(
        fleet.summaries,
        key=lambda one: (-tasks[one.workload][0], -_saved(one), one.workload),
    )
    listed = ordered[:MOST_ROWS]
    more = len(ordered) - len(listed)
    marked = frozenset(place for place, one in enumerate(listed) if tasks[one.workload][0] > 0)
    note = f"{'Marked rows need a person. ' if marked else ''}{UNKNOWN} is unknown."
    if more > 0:
        note += f" {plural(more, 'workload')} more: save a page for one owner (--owner), or ask"
        note += " `compilegate list`."
    listed_rows = [_row(one, tasks[one.workload], fleet.stage) for one in listed]
    return [Table("fleet", "Workloads", COLUMNS, listed_rows, note, marked, stacked=True)]


def _row(week: WorkloadWeek, task: Row, stage: str) -> tuple[str, ...]:
    baseline = week.runs.get(BASELINE, 0)
    runs = sum(week.runs.values())
    savings = week.savings
    return (
        week.workload,
        week.owner or UNKNOWN,
        FLAG_STATES[week.state].text if week.state in FLAG_STATES else week.state,
        week.candidate or UNKNOWN,
        f"{runs} ({runs - baseline} with a candidate)" if runs else "0",
        str(week.failed),
        shown(savings.saved_usd if savings else None, money),
        shown(savings.expected_usd if savings else None, money),
        _to_do(task, stage),
    )


def _to_do(task: Row, stage: str) -> str:
    """The task and its command; one element, because a cell of a narrow screen is a grid."""
    _, typed, text = task
    if not typed:
        return str(text)
    return Markup("<span>{}: {}</span>").format(text, command(command_at(typed, stage)))


def _saved(week: WorkloadWeek) -> float:
    return (week.savings.saved_usd or 0.0) if week.savings else 0.0
