"""The metric's spread in two parts: what the evaluation examples add, and what training does.

Variances add up and spreads do not, so the bars show shares of today's variance; larger sets of
examples shrink one part only. Above each bar: the full runs of each arm that a proof would take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain.formats import count, number
from compilegate.report.charts.base import LIGHT, Figure, View, arm_style, figure, label

# Of the sizes in the decision, today's first: more bars would say nothing new.
BARS = 5


def evaluation_view(quality: Mapping[str, Any]) -> View | None:
    """The picture, None where the decision has no split."""
    evaluation = quality.get("evaluation") or {}
    training = number(evaluation.get("spread_of_training_expected"))
    own = number(evaluation.get("spread_of_evaluation"))
    examples = number(evaluation.get("examples"))
    if training is None or not own or not examples:
        return None
    today = {"examples": examples, "runs": evaluation.get("runs_needed")}
    larger = [one for one in evaluation.get("larger") or () if number(one.get("examples"))]
    return View("Spread", _figure([today, *larger[: BARS - 1]], own**2, training**2))


def _figure(sizes: Sequence[Mapping[str, Any]], evaluation: float, training: float) -> Figure:
    """``evaluation`` and ``training`` are today's variances."""
    whole, first = evaluation + training, sizes[0]["examples"]
    names = [count(size["examples"]) for size in sizes]
    shares = [evaluation * first / size["examples"] / whole for size in sizes]
    style = arm_style(1)
    bars = [
        _bar("training itself", names, [training / whole] * len(sizes), LIGHT["baseline"]),
        _bar("choice of examples", names, shares, style.colour),
    ]
    notes = [
        label(
            _runs(size.get("runs")), LIGHT["text"], x=name, xref="x", y=share + training / whole,
            yref="y", yanchor="bottom", yshift=2,
        )
        for name, share, size in zip(names, shares, sizes, strict=True)
    ]  # fmt: skip
    return figure(
        bars,
        x={"title": "evaluation examples, today's first", "type": "category", "showgrid": False},
        y={"title": "share of today's variance", "tickformat": ".0%", "range": [0, 1.15]},
        annotations=notes,
        barmode="stack",
    )


def _bar(name: str, names: Sequence[str], shares: Sequence[float], colour: str) -> dict[str, Any]:
    return {
        "type": "bar", "name": name, "x": list(names), "y": list(shares), "width": 0.55,
        "marker": {"color": colour},
        "hovertemplate": "%{x} examples: %{y:.0%}<extra>%{fullData.name}</extra>",
    }  # fmt: skip


def _runs(runs: object) -> str:
    needed = number(runs)
    return "over 500 runs" if needed is None else f"{count(needed)} runs"
