"""The judge's cumulative sums against their limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from compilegate.report.formats import significant
from compilegate.report.story.charts.frame import runs_axis, style_of
from compilegate.report.story.sums import Sum
from compilegate.report.story.tale import Tale

TITLE = "What the judge adds up"
NAMES = {"quality": "Quality", "speed": "Speed"}


def sums_chart(tale: Tale, sums: Mapping[str, Sum]) -> Chart:
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
        views=[View(NAMES[key], _figure(tale, found)) for key, found in sums.items()],
        choice="Which watch",
    )  # fmt: skip


def _figure(tale: Tale, found: Sum) -> Figure:
    candidate = next((arm for _, _, arm, _ in found.points if arm != BASELINE), BASELINE)
    style = style_of(tale, candidate) if candidate != BASELINE else style_of(tale, BASELINE)
    line: dict[str, Any] = {
        "type": "scatter", "mode": "lines+markers", "showlegend": False,
        "x": [place for place, *_ in found.points], "y": [total for _, total, *_ in found.points],
        "line": {"color": style.colour, "width": 2},
        "marker": {
            "size": 7, "color": style.colour,
            "symbol": ["circle-open" if confirm else "circle" for *_, confirm in found.points],
        },
        "hovertemplate": "after run %{x}: %{y:.4~g}<extra></extra>",
    }  # fmt: skip
    limit = label(
        f"alarm above {significant(found.limit)}", LIGHT["limit"], xref="paper", x=0,
        xanchor="left", yref="y", y=found.limit, yanchor="bottom",
    )  # fmt: skip
    frame = Frame(
        x=runs_axis(tale),
        y={"title": f"sum of falls, {inert(found.noun)}", "rangemode": "tozero"},
        shapes=[line_across(found.limit, LIGHT["limit"], "dot", 1.6)],
        annotations=[limit],
    )
    return figure([line], frame)


def _finding(sums: Mapping[str, Sum]) -> str:
    parts = []
    for key, found in sums.items():
        highest = max(total for _, total, *_ in found.points)
        word = "over" if highest > found.limit else "never over"
        parts.append(f"{NAMES[key].lower()} was {word} its limit")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."
