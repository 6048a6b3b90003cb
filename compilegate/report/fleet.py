"""All production workloads of a stage on one page: what was saved, how each stands, what to do."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from compilegate.domain.claims import FLAG_STATES, Label, command_at
from compilegate.domain.formats import UNKNOWN, money, plural, shown
from compilegate.domain.production.summaries import Fleet, WeeklySummary
from compilegate.domain.utc import day
from compilegate.domain.workload.model import BASELINE
from compilegate.report.markup import command, render_page
from compilegate.report.metric_cards import MetricCard
from compilegate.report.tables import Table

# A row takes about 500 bytes; with as many the page stays below 400 kB.
MOST_ROWS = 500
DUE = Label("Needs attention", "bad")
IN_ORDER = Label("In order", "good")
COLUMNS = (
    "Workload", "Owner", "Flag", "Candidate", "Runs in 7 days", "Failed", "Saved so far",
    "Trials expected", "To do or under way",
)  # fmt: skip


@dataclass(frozen=True)
class _Task:
    """What a workload waits for, and the command for it; above 0 a person has to act on it."""

    urgency: int
    text: str
    command: str = ""

    @property
    def due(self) -> bool:
        return self.urgency > 0


def render_fleet(fleet: Fleet) -> str:
    """The page; the same summaries always give the same bytes."""
    tasks = {one.workload: _task(one) for one in fleet.summaries}
    due = [name for name, task in tasks.items() if task.due]
    values = {
        "workload": "all workloads",
        "stage": fleet.stage,
        "simulated": fleet.simulated,
        "label": (DUE if due or fleet.unread else IN_ORDER).text,
        "tone": (DUE if due or fleet.unread else IN_ORDER).tone,
        "headline": _headline(fleet, len(due)),
        "lede": _lede(fleet),
        "reasons": [],
        "controls": [],
        "metric_cards": _cards(fleet, len(due)),
        "not_measured": None if fleet.summaries else "No workload is registered for production.",
        "fleet": _table(fleet, tasks),
        "downloads": [],
        "next": (command_at("compilegate status", fleet.stage), "what runs at this moment"),
    }
    return render_page("fleet.html.j2", (), values)


def _headline(fleet: Fleet, due: int) -> str:
    on = sum(one.enabled for one in fleet.summaries)
    need = f"{plural(due, 'needs', 'need')} attention" if due else "none needs attention"
    return f"{on} of {plural(len(fleet.summaries), 'workload')} with a candidate on; {need}"


def _lede(fleet: Fleet) -> list[str]:
    days = f"{day(fleet.window.since)} to {day(fleet.window.until)} (UTC)"
    lines = [f"Runs are those that ended from {days}; savings count from each promotion."]
    if fleet.unread:
        names = ", ".join(sorted(fleet.unread)[:MOST_ROWS])
        lines.append(f"Left out, because the records could not be read: {names}.")
    return lines


def _cards(fleet: Fleet, due: int) -> list[MetricCard]:
    savings = [one.savings for one in fleet.summaries if one.savings]
    saved = [one.saved_usd for one in savings if one.saved_usd is not None]
    expected = [one.expected_usd for one in savings if one.expected_usd is not None]
    priced = sum(one.priced_runs for one in savings)
    note = "No run of a promoted candidate has a price and a baseline to compare with."
    if saved:
        note = f"over {plural(priced, 'run')} of promoted candidates"
        # A sum that leaves some out would be compared with all of the other.
        if len(expected) == len(savings) == len(saved):
            note += f"; the trials had expected {money(sum(expected))}"
    runs = sum(sum(one.runs.values()) for one in fleet.summaries)
    failed, waited = (
        sum(getattr(one, name) for one in fleet.summaries) for name in ("failed", "waited")
    )
    trials = sum(one.trial is not None for one in fleet.summaries)
    return [
        MetricCard("Saved so far", money(sum(saved)) if saved else UNKNOWN, note),
        MetricCard("Runs in 7 days", f"{runs:,}", f"{failed} failed, {waited} waited for capacity"),
        MetricCard("In a trial", f"{trials:,}", "their flags stay as they are until the verdict"),
        MetricCard("Need attention", f"{due:,}", "first in the table" if due else "none"),
    ]


def _table(fleet: Fleet, tasks: dict[str, _Task]) -> Table | None:
    """What a person has to do first, the most urgent of it at the top, then by saving."""
    if not fleet.summaries:
        return None
    ordered = sorted(
        fleet.summaries,
        key=lambda one: (-tasks[one.workload].urgency, -_saved(one), one.workload),
    )
    rows = [_row(one, tasks[one.workload], fleet.stage) for one in ordered[:MOST_ROWS]]
    more = len(ordered) - len(rows)
    left_out = (
        f" {plural(more, 'workload')} more: save a page for one owner (--owner)."
        if more > 0
        else ""
    )
    marked = frozenset(
        place for place, one in enumerate(ordered[:MOST_ROWS]) if tasks[one.workload].due
    )
    mark = "Marked rows need a person. " if marked else ""
    note = f"{mark}{UNKNOWN} is unknown.{left_out}"
    return Table("fleet", "Workloads", COLUMNS, rows, note=note, marked=marked, stacked=True)


def _row(one: WeeklySummary, task: _Task, stage: str) -> tuple[str, ...]:
    baseline = one.runs.get(BASELINE, 0)
    runs = sum(one.runs.values())
    savings = one.savings
    return (
        one.workload,
        one.owner or UNKNOWN,
        FLAG_STATES[one.state].text if one.state in FLAG_STATES else one.state,
        one.candidate or UNKNOWN,
        f"{runs} ({runs - baseline} with a candidate)" if runs else "0",
        str(one.failed),
        shown(savings.saved_usd if savings else None, money),
        shown(savings.expected_usd if savings else None, money),
        _to_do(task, stage),
    )


def _to_do(task: _Task, stage: str) -> str:
    """The task and its command; one element, because a cell of a narrow screen is a grid."""
    if not task.command:
        return task.text
    return Markup("<span>{}: {}</span>").format(task.text, command(command_at(task.command, stage)))


def _task(one: WeeklySummary) -> _Task:
    """The most urgent: an answer that is missing, then what went wrong, then what is under way."""
    name, of = one.workload, f" of {one.probation_runs}" if one.probation_runs else ""
    failed = f"{plural(one.failed, 'run')} failed, see why"
    approve = f'compilegate flag approve {name} --reason "..."'
    canary = " with canary runs" if one.canary else ""
    tasks = (
        (one.approval, _Task(4, "Approve or reject", approve)),
        (
            one.state == "reverted",
            _Task(3, "Find out why it got worse", f"compilegate report {name} --history"),
        ),
        (
            one.state == "stale",
            _Task(2, "Changed since the proof, try it again", f"compilegate run {name}.yaml"),
        ),
        (one.failed, _Task(1, failed, f"compilegate status {name}")),
        (one.trial, _Task(0, f"In a trial{canary}")),
        (one.state == "probation", _Task(0, f"{one.watched}{of} runs watched")),
    )
    return next((task for holds, task in tasks if holds), _Task(0, ""))


def _saved(one: WeeklySummary) -> float:
    return (one.savings.saved_usd or 0.0) if one.savings else 0.0
