"""What the history's charts share: runs along the axis, the flag behind them, events above them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from compilegate.domain.records.runs import ProductionRun
from compilegate.domain.words import run_reason
from compilegate.domain.workload.model import BASELINE
from compilegate.report.charts.base import (
    LIGHT,
    ArmStyle,
    arm_style,
    band_up,
    inert,
    label,
    line_up,
    scatter,
)
from compilegate.report.history.view import Event, HistoryView

MOST_TICKS = 16
TICK_STEPS = (1, 5, 10, 50, 100, 500, 1000)
# Background and name of each flag state; off is white.
BANDS = {
    "probation": ("first_fill", "on probation"),
    "permanent": ("third_fill", "on permanently"),
    "stale": ("shade", "stale"),
    "reverted": ("limit_fill", "reverted"),
}
# A narrower band has no room for its name, and more marks than this would overlap.
BAND_SHARE, MOST_MARKS, ROWS, NEAR = 0.14, 8, 3, 0.14


def runs_axis(view: HistoryView) -> dict[str, Any]:
    """Whole numbers, each run's own while there is room for them."""
    count = len(view.runs)
    return {
        "title": "production run", "range": [0.3, count + 0.7], "showgrid": False,
        "tickmode": "linear", "tick0": 1 if count <= MOST_TICKS else 0,
        "dtick": next((step for step in TICK_STEPS if step * MOST_TICKS >= count), count),
    }  # fmt: skip


def style_of(view: HistoryView, arm: str) -> ArmStyle:
    """The baseline's, or that of the arm among the candidates by when they first ran."""
    names = [name for name in dict.fromkeys(run.arm for run in view.runs) if name != BASELINE]
    return arm_style(0 if arm == BASELINE else 1 + names.index(arm))


def bands(view: HistoryView) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The flag behind the runs: shapes, and names where there is room."""
    shapes, names, count = [], [], len(view.runs)
    for state, group in groupby(enumerate(view.states, 1), key=lambda item: item[1].state):
        places = [place for place, _ in group]
        if state not in BANDS:
            continue
        colour, name = BANDS[state]
        x0, x1 = places[0] - 0.5, places[-1] + 0.5
        shapes.append(band_up(x0, x1, LIGHT[colour]))
        if (x1 - x0) / count >= BAND_SHARE:
            names.append(label(
                f"flag {name}", LIGHT["muted"], x=(x0 + x1) / 2, xref="x", xanchor="center",
                yref="paper", y=0, yanchor="bottom",
            ))  # fmt: skip
    return shapes, names


def marks(
    view: HistoryView, events: Sequence[Event], *, named: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Lines where something happened; with names above the plot while they are few."""
    marked = [event for event in events if event.mark]
    tones = {"good": LIGHT["goal"], "bad": LIGHT["limit"]}
    colours = [tones.get(event.tone, LIGHT["muted"]) for event in marked]
    lines = [
        line_up(event.place, colour, "dot", 1.4)
        for event, colour in zip(marked, colours, strict=True)
    ]
    if not named or len(marked) > MOST_MARKS:
        return lines, []
    names = [
        label(
            inert(str(event.mark)), colour, x=event.place, xref="x", xanchor="center",
            yref="paper", y=1, yanchor="bottom", yshift=2 + 15 * row,
        )
        for event, colour, row in zip(marked, colours, _rows(view, marked), strict=True)
    ]  # fmt: skip
    return lines, names


def _rows(view: HistoryView, marked: Sequence[Event]) -> list[int]:
    """How high each name stands: one row up where it would overlap the one before it."""
    rows: list[int] = []
    for index, event in enumerate(marked):
        near = index and event.place - marked[index - 1].place < NEAR * len(view.runs)
        rows.append((rows[-1] + 1) % ROWS if near else 0)
    return rows


def room(values: Sequence[float]) -> list[float]:
    """A range for the vertical axis with room for the bands' names below the points."""
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    return [low - 0.16 * span, high + 0.08 * span]


def points(
    view: HistoryView, values: Sequence[tuple[ProductionRun, float]], fmt: str
) -> list[dict[str, Any]]:
    """A trace per arm and kind of run: filled as usual, open where it checks an alarm."""
    traces = []
    for arm in dict.fromkeys(run.arm for run, _ in values):
        style = style_of(view, arm)
        for confirm in (False, True):
            own = [(run, y) for run, y in values if (run.arm, run.confirm) == (arm, confirm)]
            if own:
                traces.append(scatter(
                    "markers", [view.places[run.job] for run, _ in own], [y for _, y in own],
                    name=inert(arm) + (" (checks an alarm)" if confirm else ""),
                    customdata=[_hover(view, run) for run, _ in own],
                    marker={
                        "symbol": f"{style.symbol}-open" if confirm else style.symbol,
                        "size": 9 if len(view.runs) <= 60 else 5, "color": style.colour,
                        "line": {"width": 2 if confirm else 1,
                                 "color": style.colour if confirm else LIGHT["paper"]},
                    },
                    hovertemplate=f"%{{customdata}}<br>{fmt}<extra></extra>",
                ))  # fmt: skip
    return traces


def _hover(view: HistoryView, run: ProductionRun) -> str:
    parts = [f"run {view.places[run.job]}: {run.arm}", run_reason(run.why)]
    if run.details.get("scheduled"):
        parts.append(f"stands for {str(run.details['scheduled'])[:16].replace('T', ' ')}")
    if view.fault_of(run):
        parts.append("with the injected fault")
    return "<br>".join(inert(part) for part in parts)


def rolling_baseline(values: Sequence[float | None]) -> dict[str, Any]:
    """The rolling baseline through all runs; a gap where there is none."""
    return scatter(
        "lines", range(1, len(values) + 1), values, name="rolling baseline", connectgaps=False,
        hoverinfo="skip",
        line={"color": LIGHT["baseline"], "width": 1.6, "dash": "dash", "shape": "hvh"},
    )  # fmt: skip
