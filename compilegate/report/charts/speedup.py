"""Speed-up per block."""

from __future__ import annotations

from typing import Any

from compilegate.domain.formats import interval, number, pair, plural, ratio
from compilegate.report.charts.base import Chart, Frame, View, figure, inert, label, line_across
from compilegate.report.charts.palette import LIGHT, arm_style
from compilegate.report.measured import Measured
from compilegate.report.model import Document

TITLE = "Speed-up in each block"
WHERE = "both arms back to back on one machine"
APART = 0.14  # share of the axis that a label of two lines takes


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
            "title": f"block ({'each arm on its own' if measured.apart else WHERE})",
            "tickvals": numbers,
            "showgrid": False, "range": [min(numbers) - 0.6, max(numbers) + 0.6],
        },
        y={
            "title": "full-run time, baseline ÷ candidate", "ticksuffix": "x",
            "range": _range(decision, measured, values),
        },
        shapes=_shapes(decision, measured),
        annotations=_labels(measured, _range(decision, measured, values)),
        extra={"showlegend": len(traces) > 1, "margin": {"l": 56, "r": 84, "t": 36, "b": 46}},
    )  # fmt: skip
    return Chart(
        "speedup",
        TITLE,
        _finding(decision, len(numbers)),
        note=_note(decision, measured),
        views=[View("", figure(traces, frame))],
    )


def _finding(decision: Document, blocks: int) -> str:
    speed = decision.get("speedup") or {}
    estimate = number(speed.get("estimate"))
    used = number(speed.get("blocks"))
    counted = "production's full jobs" if used == 0 else plural(used or blocks, "block")
    if estimate is None:
        return f"{counted}; the judge gave no estimate."
    between = f" ({interval(speed['interval'], ratio)})" if pair(speed.get("interval")) else ""
    return f"{ratio(estimate)}{between} over {counted}."


def _note(decision: Document, measured: Measured) -> str:
    text = "A block is the unit of replication: fresh processes, compile time included."
    if pair((decision.get("speedup") or {}).get("interval")):
        text += " Line and band: the estimate and its interval."
    if measured.price_ratio != 1:
        price = f"{measured.price_ratio:.2f} times as much per hour"
        text += f" {measured.lead.name} costs {price}: reject and promote are set for its dollars."
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
    speed, style = decision.get("speedup") or {}, arm_style(1)
    reject, promote = _bars(measured)
    shapes = [
        line_across(1.0, LIGHT["axis"]),
        line_across(reject, LIGHT["limit"], "dot", 1.6),
        line_across(promote, LIGHT["goal"], "dash", 1.6),
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


def _labels(measured: Measured, shown: list[float]) -> list[dict[str, Any]]:
    reject, promote = _bars(measured)
    right = {"xref": "paper", "x": 1.01, "xanchor": "left", "yref": "y", "align": "left"}
    # Labels that would touch stand above the one line and below the other.
    close = promote - reject < APART * (shown[1] - shown[0])
    below, above = ("top", "bottom") if close else ("middle", "middle")
    marks = (
        ("no change", "muted", 1.0, "middle"),
        (f"reject<br>{ratio(reject)}", "limit", reject, below),
        (f"promote<br>{ratio(promote)}", "goal", promote, above),
    )
    return [
        label(text, LIGHT[colour], y=y, yanchor=anchor, **right)
        for text, colour, y, anchor in marks
    ]


def _bars(measured: Measured) -> tuple[float, float]:
    """The lead's thresholds as ratios of times: dollars decide, so that its price is in them."""
    policy, price = measured.evidence.policy, measured.price_ratio
    return policy.reject_speedup * price, policy.promote_speedup * price


def _range(decision: Document, measured: Measured, values: list[float]) -> list[float]:
    ends = pair((decision.get("speedup") or {}).get("interval"))
    marks = [1.0, *_bars(measured), *values]
    if ends:
        # A hopelessly wide interval must not squeeze the points into a line.
        reach = max(max(marks) - min(marks), 0.1)
        marks += [max(ends[0], min(marks) - reach), min(ends[1], max(marks) + reach)]
    room = 0.08 * (max(marks) - min(marks))
    return [min(marks) - room, max(marks) + room]
