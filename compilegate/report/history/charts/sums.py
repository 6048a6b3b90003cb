"""The judge's cumulative sums against their limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.formats import significant
from compilegate.domain.workload.model import BASELINE
from compilegate.report.charts.base import (
    Chart,
    Figure,
    Frame,
    View,
    figure,
    inert,
    label,
    line_across,
)
from compilegate.report.charts.palette import LIGHT
from compilegate.report.history.charts.frame import runs_axis, style_of
from compilegate.report.history.sums import Sum
from compilegate.report.history.view import HistoryView

TITLE = "What the judge adds up"
NAMES = {"quality": "Quality", "speed": "Speed"}


def sums_chart(view: HistoryView, sums: Mapping[str, Sum]) -> Chart:
    """How far production has fallen, added up run by run; above the line is an alarm."""
    if not sums:
        return Chart(
            "sums", TITLE, "", missing="Nothing has been watched yet: the sums begin with the "
            "first run after a promotion.",
        )  # fmt: skip
    return Chart(
        "sums", TITLE, _finding(sums),
        note="Each run adds what it fell short of the baseline by, less half of the fall that "
        "matters; a sum never goes below zero. After an alarm was checked it begins anew.",
        views=[View(NAMES[key], _figure(view, one)) for key, one in sums.items()],
        choice="Which watch",
    )  # fmt: skip


def _figure(view: HistoryView, one: Sum) -> Figure:
    candidate = next((arm for _, _, arm, _ in one.points if arm != BASELINE), BASELINE)
    style = style_of(view, candidate) if candidate != BASELINE else style_of(view, BASELINE)
    line: dict[str, Any] = {
        "type": "scatter", "mode": "lines+markers", "showlegend": False,
        "x": [place for place, *_ in one.points], "y": [total for _, total, *_ in one.points],
        "line": {"color": style.colour, "width": 2},
        "marker": {
            "size": 7, "color": style.colour,
            "symbol": ["circle-open" if confirm else "circle" for *_, confirm in one.points],
        },
        "hovertemplate": "after run %{x}: %{y:.4~g}<extra></extra>",
    }  # fmt: skip
    limit = label(
        f"alarm above {significant(one.limit)}", LIGHT["limit"], xref="paper", x=0,
        xanchor="left", yref="y", y=one.limit, yanchor="bottom",
    )  # fmt: skip
    frame = Frame(
        x=runs_axis(view),
        y={"title": f"sum of falls, {inert(one.noun)}", "rangemode": "tozero"},
        shapes=[line_across(one.limit, LIGHT["limit"], "dot", 1.6)],
        annotations=[limit],
    )
    return figure([line], frame)


def _finding(sums: Mapping[str, Sum]) -> str:
    parts = []
    for key, one in sums.items():
        highest = max(total for _, total, *_ in one.points)
        word = "over" if highest > one.limit else "never over"
        parts.append(f"{NAMES[key].lower()} was {word} its limit")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."
