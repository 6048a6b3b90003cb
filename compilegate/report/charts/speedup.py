"""Speed-up per block."""

from __future__ import annotations

from typing import Any

from compilegate.report.charts.base import Chart, Frame, View, figure, inert, label, line_across
from compilegate.report.charts.palette import LIGHT, arm_style
from compilegate.report.formats import interval, number, pair, plural, ratio
from compilegate.report.measured import Measured
from compilegate.report.model import Document

TITLE = "Speed-up in each block"


def speedup_chart(decision: Document, measured: Measured) -> Chart:
    """Every block's full-run speed-up against the thresholds, with the estimate's interval."""
    found = [(arm, measured.speedups(arm)) for arm in measured.candidates]
    if not any(blocks for _, blocks in found):
        return Chart(
            "speedup", TITLE, "", missing="No block has a steady state in both arms of a pair."
        )
    traces = [
        _points(index + 1, arm.name, blocks) for index, (arm, blocks) in enumerate(found) if blocks
    ]
    numbers = sorted({n for _, blocks in found for n in blocks})
    values = [value for _, blocks in found for value in blocks.values()]
    frame = Frame(
        x={
            "title": "block (both arms back to back on one machine)", "tickvals": numbers,
            "showgrid": False, "range": [min(numbers) - 0.6, max(numbers) + 0.6],
        },
        y={
            "title": "full-run time, baseline ÷ candidate", "ticksuffix": "x",
            "range": _range(decision, measured, values),
        },
        shapes=_shapes(decision, measured),
        annotations=_labels(measured),
        extra={"showlegend": len(traces) > 1, "margin": {"l": 56, "r": 84, "t": 36, "b": 46}},
    )  # fmt: skip
    return Chart(
        "speedup",
        TITLE,
        _finding(decision, len(numbers)),
        note=_note(decision),
        views=[View("", figure(traces, frame))],
    )


def _finding(decision: Document, blocks: int) -> str:
    speed = decision.get("speedup") or {}
    estimate = number(speed.get("estimate"))
    used = number(speed.get("blocks"))
    counted = "production's whole jobs" if used == 0 else plural(used or blocks, "block")
    if estimate is None:
        return f"{counted}; the judge gave no estimate."
    between = f" ({interval(speed['interval'], ratio)})" if pair(speed.get("interval")) else ""
    return f"{ratio(estimate)}{between} over {counted}."


def _note(decision: Document) -> str:
    text = "A block is the unit of replication: fresh processes, compile time included."
    if pair((decision.get("speedup") or {}).get("interval")):
        text += " Line and band: the estimate and its interval."
    return text


def _points(index: int, name: str, blocks: dict[int, float]) -> dict[str, Any]:
    style = arm_style(index)
    return {
        "type": "scatter", "mode": "markers", "name": inert(name),
        "x": list(blocks), "y": list(blocks.values()),
        "marker": {
            "symbol": style.symbol, "size": 11, "color": style.colour,
            "line": {"color": LIGHT["paper"], "width": 1.5},
        },
        "hovertemplate": "block %{x}: %{y:.3f}x<extra></extra>",
    }  # fmt: skip


def _shapes(decision: Document, measured: Measured) -> list[dict[str, Any]]:
    policy, speed, style = measured.evidence.policy, decision.get("speedup") or {}, arm_style(1)
    shapes = [
        line_across(1.0, LIGHT["axis"]),
        line_across(policy.reject_speedup, LIGHT["limit"], "dot", 1.6),
        line_across(policy.promote_speedup, LIGHT["goal"], "dash", 1.6),
    ]
    ends, estimate = pair(speed.get("interval")), number(speed.get("estimate"))
    if ends:
        shapes.append({
            "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": ends[0],
            "y1": ends[1], "fillcolor": style.fill, "line": {"width": 0}, "layer": "below",
        })  # fmt: skip
    if estimate is not None:
        shapes.append(line_across(estimate, style.colour, width=1.5))
    return shapes


def _labels(measured: Measured) -> list[dict[str, Any]]:
    policy = measured.evidence.policy
    right = {"xref": "paper", "x": 1.01, "xanchor": "left", "yref": "y", "yanchor": "middle"}
    return [
        label("no change", LIGHT["muted"], y=1.0, **right),
        label(f"reject<br>{ratio(policy.reject_speedup)}", LIGHT["limit"],
              y=policy.reject_speedup, align="left", **right),
        label(f"promote<br>{ratio(policy.promote_speedup)}", LIGHT["goal"],
              y=policy.promote_speedup, align="left", **right),
    ]  # fmt: skip


def _range(decision: Document, measured: Measured, values: list[float]) -> list[float]:
    policy, ends = measured.evidence.policy, pair((decision.get("speedup") or {}).get("interval"))
    marks = [1.0, policy.reject_speedup, policy.promote_speedup, *values]
    if ends:
        # A hopelessly wide interval must not squeeze the points into a line.
        reach = max(max(marks) - min(marks), 0.1)
        marks += [max(ends[0], min(marks) - reach), min(ends[1], max(marks) + reach)]
    room = 0.08 * (max(marks) - min(marks))
    return [min(marks) - room, max(marks) + room]
