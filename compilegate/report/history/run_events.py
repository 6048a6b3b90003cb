"""Production runs in the timeline; a row of uneventful runs makes one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from compilegate.domain.arithmetic import mean
from compilegate.domain.formats import duration, fixed, money, number, plural, shown
from compilegate.domain.records.runs import TEAM, BegunRun, ProductionRun
from compilegate.domain.words import run_reason
from compilegate.report.history.view import Event, HistoryView, failed, problem

# Reasons of uneventful runs.
PLAIN = ("scheduled", "flag", "refresh")
# Fewer in a row stand on their own.
ROW = 4


def ended(view: HistoryView, run: ProductionRun) -> Event:
    """A run that has ended."""
    place = view.places[run.job]
    parts = [run_reason(run.why), *_figures(view, run), *_notes(view, run)]
    bad = failed(run)
    return Event(
        float(run.at), "run", f"Run {place}: {run.arm}{' failed' if bad else ''}",
        "; ".join(part for part in parts if part) + ".",
        tone="bad" if bad else "", place=float(place), quiet=_is_quiet(view, run),
    )  # fmt: skip


def unfinished(view: HistoryView, begun: BegunRun) -> Iterator[Event]:
    """A run that has begun and has no recorded end."""
    if begun.run in view.history.ended_runs:
        return
    text = (
        f"run {begun.run} trains {begun.arm}: {run_reason(begun.why)}. Its end is not recorded yet."
    )
    place = view.place_at(float(begun.at))
    yield Event(float(begun.at), "run_begun", "A run is under way", text, "open", place)


def folded(view: HistoryView, events: Sequence[Event]) -> list[Event]:
    """The timeline with each long row of plain runs as one line."""
    lines: list[Event] = []
    row: list[Event] = []
    for event in events:
        if event.quiet:
            row.append(event)
            continue
        # The run that raised the alarm keeps its own line.
        kept = 1 if event.kind == "alarm" and row else 0
        lines += [*_row(view, row[: len(row) - kept]), *row[len(row) - kept :], event]
        row = []
    return [*lines, *_row(view, row)]


def _row(view: HistoryView, row: Sequence[Event]) -> list[Event]:
    if len(row) < ROW:
        return list(row)
    runs = [view.runs[int(event.place) - 1] for event in row]
    first, last = int(row[0].place), int(row[-1].place)
    arms = Counter(run.arm for run in runs)
    text = "; ".join(
        f"{plural(count, 'run')} of {arm}{_mean_words(view, arm, runs)}"
        for arm, count in arms.items()
    )
    return [Event(row[-1].at, "run", f"Runs {first} to {last}", f"{text}.", place=float(last))]


def _mean_words(view: HistoryView, arm: str, runs: Sequence[ProductionRun]) -> str:
    own = [run.result.get("metric") for run in runs if run.arm == arm]
    values = [value for value in map(number, own) if value is not None]
    return f", {view.metric} {fixed(mean(values))} on average" if values else ""


def _is_quiet(view: HistoryView, run: ProductionRun) -> bool:
    plain = run.why in PLAIN and run.finished and run.counts and not run.confirm
    return plain and run.launched_by != TEAM and view.fault_of(run) is None


def _figures(view: HistoryView, run: ProductionRun) -> Iterator[str]:
    metric = number(run.result.get("metric"))
    if metric is not None:
        yield f"{view.metric} {fixed(metric)}"
    if run.result.get("wall_seconds"):
        yield shown(run.result.get("wall_seconds"), duration)
    if run.usd is not None:
        yield money(run.usd)


def _notes(view: HistoryView, run: ProductionRun) -> Iterator[str]:
    fault = view.fault_of(run)
    if fault:
        yield f"with the injected fault ({fault})"
    if run.launched_by == TEAM:
        yield "launched by the team"
    if run.confirm:
        yield "checks the alarm"
    if problem(run):
        yield problem(run)
    if not run.counts:
        yield "no evidence"
    scheduled = run.details.get("scheduled")
    if scheduled:
        yield f"stands for {datetime.fromisoformat(scheduled).astimezone(UTC):%Y-%m-%d %H:%M}"
