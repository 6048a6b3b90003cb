"""What the history's charts share: runs along the axis, the flag behind them, events above them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from compilegate.domain.claims import run_reason
from compilegate.domain.formats import count
from compilegate.domain.records.runs import ProductionRun
from compilegate.domain.workload.model import BASELINE
from compilegate.report.charts.figure import (
    DASHED,
    DOTTED,
    ArmStyle,
    Axis,
    Band,
    Line,
    Points,
    Rule,
    arm_style,
)
from compilegate.report.history.view import MOST_SHOWN, Event, HistoryView

MOST_TICKS = 16
TICK_STEPS = (1, 5, 10, 50, 100, 500, 1000)
# Background and name of each flag state; off is white.
BANDS = {
    "probation": ("first", "flag on probation"),
    "permanent": ("third", "flag on permanently"),
    "stale": ("shade", "flag stale"),
    "reverted": ("limit", "flag reverted"),
}
MANY_RUNS = 60  # more have smaller markers without words; the table has them


def runs_axis(view: HistoryView) -> Axis:
    """Whole numbers, each run's own while there is room for them."""
    runs, before, last = len(view.latest), view.left_out, len(view.runs)
    step = next((step for step in TICK_STEPS if step * MOST_TICKS >= runs), runs)
    first = before + 1 if runs <= MOST_TICKS else before - before % step + step
    ticks = [(float(number), count(number)) for number in range(first, last + 1, step)]
    return Axis("production run", before + 0.3, last + 0.7, ticks)


def style_of(view: HistoryView, arm: str) -> ArmStyle:
    """The baseline's, or that of the arm among the candidates by when they first ran."""
    return arm_style(0 if arm == BASELINE else 1 + view.candidates.index(arm))


def bands(view: HistoryView) -> list[Band]:
    """The flag behind the runs that began under it."""
    drawn = []
    states = enumerate(view.states[view.left_out :], view.left_out + 1)
    for state, group in groupby(states, key=lambda item: item[1].state):
        places = [place for place, _ in group]
        if state in BANDS:
            role, name = BANDS[state]
            drawn.append(Band(places[0] - 0.5, places[-1] + 0.5, role, name))
    return drawn


def marks(view: HistoryView, events: Sequence[Event], *, named: bool) -> list[Rule]:
    """Lines where something happened, with names above the plot; of very many the latest."""
    roles = {"good": "goal", "bad": "limit"}
    marked = [(event, event.mark) for event in events if event.mark and event.place > view.left_out]
    return [
        Rule(
            roles.get(event.tone, "muted"), x=event.place, dash=DOTTED,
            name=mark if named else "",
        )
        for event, mark in marked[-MOST_SHOWN:]
    ]  # fmt: skip


def points(
    view: HistoryView, values: Sequence[tuple[ProductionRun, float]], words: Callable[[float], str]
) -> list[Points]:
    """Markers per arm and kind of run: filled as usual, open where it checks an alarm.

    ``words`` say a value.
    """
    many = len(view.runs) > MANY_RUNS
    arms: dict[str, dict[bool, list[tuple[ProductionRun, float]]]] = {}
    for run, y in values:
        arms.setdefault(run.arm, {False: [], True: []})[run.confirm].append((run, y))
    return [
        Points(
            [view.places[run.job] for run, _ in own], [y for _, y in own],
            style_of(view, arm).role, style_of(view, arm).symbol,
            [] if many else [f"{_words(view, run)}\n{words(y)}" for run, y in own],
            size=5 if many else 8, open=confirm,
            name=arm + (" (checks an alarm)" if confirm else ""),
        )
        for arm, kinds in arms.items()
        for confirm, own in kinds.items()
        if own
    ]  # fmt: skip


def _words(view: HistoryView, run: ProductionRun) -> str:
    parts = [f"run {view.places[run.job]}: {run.arm}", run_reason(run.why)]
    if run.details.get("scheduled"):
        parts.append(f"stands for {str(run.details['scheduled'])[:16].replace('T', ' ')}")
    if view.fault_of(run):
        parts.append("with the injected fault")
    return "\n".join(parts)


def rolling_baseline(view: HistoryView, values: Sequence[float | None]) -> Line:
    """The rolling baseline through the runs that are shown; a gap where there is none."""
    places = [view.left_out + place - 0.5 for place in range(1, len(values) + 2)]
    return Line(
        places, [*values, *values[-1:]], "baseline", width=1.6, dash=DASHED, stepped=True,
        name="rolling baseline",
    )  # fmt: skip
