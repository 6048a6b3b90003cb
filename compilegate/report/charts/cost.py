"""Cost over production runs, and where the trial has paid for itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from compilegate.domain.formats import money, number, pair, plural
from compilegate.report.charts.base import (
    Chart,
    Figure,
    Frame,
    View,
    figure,
    label,
    line_across,
    line_up,
)
from compilegate.report.charts.palette import LIGHT, arm_style
from compilegate.report.model import Document

TITLE = "Cost and break-even"
WEEKS_PER_YEAR = 52


@dataclass(frozen=True)
class Costs:
    """USD; ``trial`` None when unknown, ``spread`` the interval of the saving per run."""

    base_run: float
    saving: float
    trial: float | None
    spread: tuple[float, float] | None
    runs: int

    @property
    def break_even(self) -> float | None:
        """Runs after which the trial's cost is back; None when never, or unknown."""
        if self.trial is None or self.saving <= 0:
            return None
        return self.trial / self.saving


def cost_chart(decision: Document, evidence: Document | None) -> Chart:
    """Net saving and total spend over the production runs that follow."""
    costs = _costs(decision, evidence or {})
    if costs is None:
        return Chart(
            "cost", TITLE, "",
            missing="Without a measured speed-up and a price per run there is no saving to draw.",
        )  # fmt: skip
    return Chart(
        "cost",
        TITLE,
        _finding(costs),
        note="Prices are list prices times billable time, an estimate. "
        + ("" if costs.spread is None else "Band: the speed-up's interval."),
        views=[View("Net saving", _net(costs)), View("Total spend", _spend(costs))],
        choice="What to show",
    )


def _costs(decision: Document, evidence: Document) -> Costs | None:
    saving = decision.get("saving") or {}
    per_run = number(saving.get("usd_per_run"))
    base = number(saving.get("usd_per_run_baseline"))
    if base is None:
        base = next(
            (number(a.get("usd_per_run")) for a in decision.get("arms") or ()
             if a and a.get("name") == "baseline"), None,
        )  # fmt: skip
    if per_run is None or base is None:
        return None
    year, ends = number(saving.get("usd_per_year")), pair(saving.get("interval_usd_per_year"))
    spread = None
    if ends and year:
        spread = (ends[0] * per_run / year, ends[1] * per_run / year)
    trial = number(saving.get("trial_usd"))
    if trial is None:
        trial = number((evidence.get("plan") or {}).get("spent_usd"))
    yearly = WEEKS_PER_YEAR * (number(evidence.get("runs_per_week")) or 0)
    payback = trial / per_run if trial is not None and per_run > 0 else None
    return Costs(base, per_run, trial, spread, _horizon(payback, yearly))


def _horizon(break_even: float | None, yearly: float) -> int:
    """Runs to draw: enough to see the break-even, at most a year beyond which nobody plans."""
    if break_even is None:
        return int(min(max(yearly, 10), 60))
    return max(10, math.ceil(min(3 * break_even, max(yearly, 1.3 * break_even))))


def _finding(costs: Costs) -> str:
    if costs.saving <= 0:
        return f"Every run would cost {money(-costs.saving)} more: never paid back."
    if costs.break_even is None:
        return f"{money(costs.saving)} saved per run; the trial's cost is unknown."
    return (
        f"{money(costs.saving)} saved per run; the trial's {money(costs.trial or 0)} is back "
        f"after {plural(costs.break_even, 'run')}."
    )


def _grid(costs: Costs) -> list[float]:
    points = min(costs.runs, 60)
    return [round(i * costs.runs / points, 3) for i in range(points + 1)]


def _frame(costs: Costs, y_title: str, **extra: Any) -> Frame:
    shapes, notes = [], []
    if costs.break_even is not None:
        shapes.append(line_up(costs.break_even, LIGHT["goal"], "dash", 1.6))
        notes.append(
            label(f"paid back after {plural(costs.break_even, 'run')}", LIGHT["goal"],
                  x=costs.break_even, xref="x", xanchor="left", xshift=6,
                  y=0.03, yref="paper", yanchor="bottom"),
        )  # fmt: skip
    return Frame(
        x={"title": "production runs after the trial", "showgrid": False, "range": [0, costs.runs]},
        y={
            "title": y_title,
            "tickformat": "$,.3~r",
        },
        shapes=[line_across(0.0, LIGHT["axis"]), *shapes],
        annotations=notes,
        extra=extra,
    )


def _net(costs: Costs) -> Figure:
    style, x, trial = arm_style(1), _grid(costs), costs.trial or 0.0
    traces: list[dict[str, Any]] = []
    if costs.spread:
        for end, fill in (
            (costs.spread[0], {}),
            (costs.spread[1], {"fill": "tonexty", "fillcolor": style.fill}),
        ):
            traces.append({
                "type": "scatter", "mode": "lines", "x": x, "y": [n * end - trial for n in x],
                "line": {"width": 0, "color": style.colour}, "hoverinfo": "skip", **fill,
            })  # fmt: skip
    traces.append({
        "type": "scatter", "mode": "lines", "x": x, "y": [n * costs.saving - trial for n in x],
        "line": {"color": style.colour, "width": 2.6},
        "hovertemplate": "after %{x:.3~g} runs: $%{y:,.4~g}<extra></extra>",
    })  # fmt: skip
    return figure(traces, _frame(costs, "saved in total, USD", showlegend=False))


def _spend(costs: Costs) -> Figure:
    x, trial = _grid(costs), costs.trial or 0.0
    lines = (
        (0, "stay on the baseline", [n * costs.base_run for n in x]),
        (1, "trial, then the candidate", [trial + n * (costs.base_run - costs.saving) for n in x]),
    )
    traces = [
        {
            "type": "scatter", "mode": "lines", "name": name, "x": x, "y": y,
            "line": {
                "color": arm_style(index).colour, "width": 2.6, "dash": arm_style(index).dash,
            },
            "hovertemplate": "after %{x:.3~g} runs: $%{y:,.4~g}<extra>%{fullData.name}</extra>",
        }
        for index, name, y in lines
    ]  # fmt: skip
    return figure(traces, _frame(costs, "spent in total, USD"))
