"""What the history's charts share: runs along the axis, the flag behind them, events above them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from compilegate.domain.formats import count
from compilegate.domain.records.runs import ProductionRun
from compilegate.domain.words import run_reason
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
from compilegate.report.history.view import Event, HistoryView

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
    runs = len(view.runs)
    step = next((step for step in TICK_STEPS if step * MOST_TICKS >= runs), runs)
    first = 1 if runs <= MOST_TICKS else step
    ticks = [(float(number), count(number)) for number in range(first, runs + 1, step)]
    return Axis("production run", 0.3, runs + 0.7, ticks)


def style_of(view: HistoryView, arm: str) -> ArmStyle:
    """The baseline's, or that of the arm among the candidates by when they first ran."""
    names = [name for name in dict.fromkeys(run.arm for run in view.runs) if name != BASELINE]
    return arm_style(0 if arm == BASELINE else 1 + names.index(arm))


def bands(view: HistoryView) -> list[Band]:
    """The flag behind the runs that began under it."""
    drawn = []
    for state, group in groupby(enumerate(view.states, 1), key=lambda item: item[1].state):
        places = [place for place, _ in group]
        if state in BANDS:
            role, name = BANDS[state]
            drawn.append(Band(places[0] - 0.5, places[-1] + 0.5, role, name))
    return drawn


def marks(events: Sequence[Event], *, named: bool) -> list[Rule]:
    """Lines where something happened, with names above the plot."""
    roles = {"good": "goal", "bad": "limit"}
    return [
        Rule(
            roles.get(event.tone, "muted"), x=event.place, dash=DOTTED,
            name=event.mark if named else "",
        )
        for event in events
        if event.mark
    ]  # fmt: skip


def points(
    view: HistoryView, values: Sequence[tuple[ProductionRun, float]], words: str
) -> list[Points]:
    """Markers per arm and kind of run: filled as usual, open where it checks an alarm.

    ``words`` say a value, as a format.
    """
    drawn, many = [], len(view.runs) > MANY_RUNS
    for arm in dict.fromkeys(run.arm for run, _ in values):
        style = style_of(view, arm)
        for confirm in (False, True):
            own = [(run, y) for run, y in values if (run.arm, run.confirm) == (arm, confirm)]
            if own:
                drawn.append(Points(
                    [view.places[run.job] for run, _ in own], [y for _, y in own],
                    style.role, style.symbol,
                    [] if many else [f"{_words(view, run)}\n{words.format(y)}" for run, y in own],
                    size=5 if many else 8, open=confirm,
                    name=arm + (" (checks an alarm)" if confirm else ""),
                ))  # fmt: skip
    return drawn


def _words(view: HistoryView, run: ProductionRun) -> str:
    parts = [f"run {view.places[run.job]}: {run.arm}", run_reason(run.why)]
    if run.details.get("scheduled"):
        parts.append(f"stands for {str(run.details['scheduled'])[:16].replace('T', ' ')}")
    if view.fault_of(run):
        parts.append("with the injected fault")
    return "\n".join(parts)


def rolling_baseline(values: Sequence[float | None]) -> Line:
    """The rolling baseline through all runs; a gap where there is none."""
    places = [place - 0.5 for place in range(1, len(values) + 2)]
    return Line(
        places, [*values, *values[-1:]], "baseline", width=1.6, dash=DASHED, stepped=True,
        name="rolling baseline",
    )  # fmt: skip
