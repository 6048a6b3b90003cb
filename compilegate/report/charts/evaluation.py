"""The metric's spread in two parts: what the evaluation examples add, and what training does.

Variances add up and spreads do not, so the bars show shares of today's variance; larger sets of
examples shrink one part only. Each bar is named by its examples and the full runs of each arm that
a proof would take.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.decision import EvaluationFinding, EvaluationSplit, LargerEvaluation
from compilegate.domain.formats import count, percent
from compilegate.report.charts.figure import (
    NAME_ABOVE,
    ROW_PIXELS,
    Axis,
    Bar,
    Figure,
    Label,
    Mark,
    View,
    arm_style,
    axis,
    rows_axis,
)

# Of the sizes in the decision, today's first: more bars would say nothing new.
BARS = 5


def evaluation_view(split: EvaluationFinding | None) -> View | None:
    """The picture, None where the decision has no split."""
    if not isinstance(split, EvaluationSplit) or not split.spread_of_evaluation:
        return None
    own, training = split.spread_of_evaluation, split.spread_of_training_expected
    today = LargerEvaluation(split.examples, split.spread, split.runs_needed)
    return View("Spread", _figure([today, *split.larger[: BARS - 1]], own**2, training**2))


def _figure(sizes: Sequence[LargerEvaluation], evaluation: float, training: float) -> Figure:
    """``evaluation`` and ``training`` are today's variances."""
    whole, first = evaluation + training, sizes[0].examples
    marks: list[Mark] = []
    for row, size in enumerate(sizes):
        own, added = training / whole, evaluation * first / size.examples / whole
        words, named = f"{count(size.examples)} examples", row == 0
        marks += [
            _bar(0.0, own, row, "baseline", f"{words}: training {percent(own, 2)}",
                 name="training itself" if named else ""),
            _bar(own, own + added, row, arm_style(1).role,
                 f"{words}: choice of examples {percent(added, 2)}",
                 name="choice of examples" if named else ""),
            Label(f"{words}: {_runs(size.runs)}", 0.0, row, above=NAME_ABOVE),
        ]  # fmt: skip
    shares: Axis = axis(
        "share of today's variance", [1.0], show=lambda x: percent(x, 2), from_zero=True, room=0.02
    )
    return Figure(shares, rows_axis(len(sizes)), marks, height=ROW_PIXELS * len(sizes))


def _bar(low: float, high: float, row: int, role: str, words: str, *, name: str) -> Bar:
    return Bar(low, high, row, 0.3, role, words, full=True, name=name)


def _runs(needed: int | None) -> str:
    return "over 500 runs" if needed is None else f"{count(needed)} runs"
