"""Step-time trace of a block."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from compilegate.domain.formats import duration
from compilegate.domain.judging.steady_state import Segment
from compilegate.report.charts.base import (
    LIGHT,
    POINTS,
    Chart,
    Figure,
    View,
    arm_style,
    band_up,
    figure,
    inert,
    label,
    line_up,
    scatter,
    thin,
)
from compilegate.report.measured import Block, Measured

TITLE = "Step times"
SLOW = 2.0  # an early step slower than this many steady steps counts as compiling


def trace_chart(measured: Measured) -> Chart:
    """Every step of each block over time, compile phase shaded and the warm-up cut marked."""
    lengths = {
        number: len(block.run.step_seconds)
        for arm in measured.arms
        for number, block in arm.blocks.items()
        if _is_timed(block)
    }
    if not lengths:
        return Chart("trace", TITLE, "", missing="No block left step times.")
    views = [
        View(f"Block {n}" if len(lengths) <= 4 else str(n), _figure(measured, n))
        for n in sorted(lengths)
    ]
    note = (
        "A plateau is one step. Shaded: the candidate's early steps, in which it compiles. "
        "Dotted line: its warm-up cut."
    )
    if max(lengths.values()) > POINTS:
        note += (
            f" Of {max(lengths.values()):,} steps at most {POINTS} are drawn per arm: "
            "the fastest and slowest of each stretch."
        )
    return Chart("trace", TITLE, _finding(measured), note=note, views=views, choice="Block to show")


def _is_timed(block: Block) -> bool:
    return bool(block.run.step_seconds) and min(block.run.step_seconds) > 0


def _finding(measured: Measured) -> str:
    parts = []
    for arm in measured.arms:
        steady = sorted(segment.steady_step_seconds for segment in arm.steady)
        if steady:
            parts.append(f"{arm.name} {duration(steady[len(steady) // 2])}")
    return f"Steady step: {', '.join(parts)}." if parts else "No arm reached a steady state."


def _figure(measured: Measured, block_number: int) -> Figure:
    traces: list[dict[str, Any]] = []
    values: list[float] = []
    for index, arm in enumerate(measured.arms):
        block = arm.blocks.get(block_number)
        if block and _is_timed(block):
            traces.append(_line(index, arm.name, block))
            values += block.run.step_seconds
    lead = measured.lead.blocks.get(block_number)
    shapes, notes = _marks(lead, lead.segment) if lead and lead.segment else ([], [])
    return figure(
        traces,
        x={"title": "seconds of training", "showgrid": False, "rangemode": "tozero"},
        y={"title": "time per step (logarithmic)", "type": "log", **_ticks(values)},
        shapes=shapes,
        annotations=notes,
    )


def _ticks(values: list[float]) -> dict[str, Any]:
    """Ticks at 1, 2 and 5 of each decade, named in the unit that suits them."""
    if not values:
        return {}
    low, high = math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.15
    decades = range(math.floor(low), math.ceil(high) + 1)
    leads = (1, 2, 5) if high - low < 3 else (1,)
    marks = [lead * 10.0**decade for decade in decades for lead in leads]
    inside = [mark for mark in marks if low <= math.log10(mark) <= high]
    return {"tickvals": inside, "ticktext": [duration(x) for x in inside], "range": [low, high]}


def _line(index: int, name: str, block: Block) -> dict[str, Any]:
    style, seconds = arm_style(index), block.run.step_seconds
    begins, points = [0.0, *accumulate(seconds)], thin(seconds)
    last_step, last_value = points[-1]
    return scatter(
        "lines",
        [*(round(begins[step], 5) for step, _ in points), round(begins[last_step + 1], 5)],
        [*(round(value, 6) for _, value in points), round(last_value, 6)],
        name=inert(name),
        customdata=[*(step + 1 for step, _ in points), last_step + 1],
        line={"color": style.colour, "width": 1.5, "shape": "hv"},
        hovertemplate="step %{customdata}: %{y:.4~g} s<extra>%{fullData.name}</extra>",
    )


def _marks(block: Block, segment: Segment) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The compile phase and the warm-up cut of the candidate's segment."""
    colour, begins = arm_style(1).colour, [0.0, *accumulate(block.run.step_seconds)]
    cut, early = begins[segment.warm_up_steps], block.run.step_seconds[: segment.warm_up_steps]
    slow = [index for index, s in enumerate(early, 1) if s > SLOW * segment.steady_step_seconds]
    at = {"x": cut, "xref": "x", "xanchor": "left", "xshift": 5, "yref": "paper", "yanchor": "top"}
    shapes = [line_up(cut, colour, "dot", 1.6)]
    notes = [label("warm-up cut", colour, y=1, **at)]
    if slow:
        shapes.append(band_up(0, begins[slow[-1]], LIGHT["shade"]))
    recorded = block.run.compile_seconds
    if recorded > 0:
        notes.append(label(f"{duration(recorded)} compiling", LIGHT["muted"], y=0.91, **at))
    return shapes, notes
