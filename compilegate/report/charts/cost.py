"""Cost over production runs, and where the trial has paid for itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.formats import money, number, plural
from compilegate.domain.workload.model import BASELINE
from compilegate.report.charts.base import (
    LIGHT,
    Chart,
    Figure,
    View,
    arm_style,
    figure,
    label,
    line_across,
    line_up,
    scatter,
)
from compilegate.report.trial_report import TrialReport

TITLE = "Cost and break-even"


@dataclass(frozen=True)
class Costs:
    """USD; ``trial`` None when unknown, ``spread`` the interval of the saving per run.

    ``runs`` is how many production runs are drawn.
    """

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

    @property
    def grid(self) -> list[float]:
        """Where the lines are computed."""
        points = min(self.runs, 60)
        return [round(i * self.runs / points, 3) for i in range(points + 1)]


def cost_chart(trial: TrialReport) -> Chart:
    """Net saving and total spend over the production runs that follow."""
    costs = _costs(trial)
    if costs is None:
        why = "Without a measured speed-up and a price per run there is no saving to draw."
        return Chart("cost", TITLE, "", missing=why)
    return Chart(
        "cost",
        TITLE,
        _finding(costs),
        note="Prices are list prices times billable time, an estimate. "
        + ("" if costs.spread is None else "Band: the speed-up's interval."),
        views=[View("Net saving", _net(costs)), View("Total spend", _spend(costs))],
        choice="What to show",
    )


def _costs(trial: TrialReport) -> Costs | None:
    saving, spent = trial.saving, trial.trial_usd
    per_run, base = saving.usd_per_run, saving.usd_per_run_baseline
    if base is None:
        arms = {arm["name"]: arm for arm in trial.arms}
        base = number(arms.get(BASELINE, {}).get("usd_per_run"))
    if per_run is None or base is None:
        return None
    year, ends, spread = saving.usd_per_year, saving.interval_usd_per_year, None
    if ends and year:
        spread = (ends[0] * per_run / year, ends[1] * per_run / year)
    yearly = WEEKS_PER_YEAR * ((trial.evidence and trial.evidence.runs_per_week) or 0)
    payback = spent / per_run if spent is not None and per_run > 0 else None
    return Costs(base, per_run, spent, spread, _horizon(payback, yearly))


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


def _net(costs: Costs) -> Figure:
    style, x, trial = arm_style(1), costs.grid, costs.trial or 0.0
    traces = [
        scatter(
            "lines", x, [n * end - trial for n in x], line={"width": 0, "color": style.colour},
            hoverinfo="skip", **fill,
        )
        for end, fill in zip(
            costs.spread or (), ({}, {"fill": "tonexty", "fillcolor": style.fill}), strict=False
        )
    ]  # fmt: skip
    traces.append(scatter(
        "lines", x, [n * costs.saving - trial for n in x],
        line={"color": style.colour, "width": 2.6},
        hovertemplate="after %{x:.3~g} runs: $%{y:,.4~g}<extra></extra>",
    ))  # fmt: skip
    return _figure(costs, traces, "saved in total, USD", showlegend=False)


def _spend(costs: Costs) -> Figure:
    x, trial = costs.grid, costs.trial or 0.0
    lines = (
        ("stay on the baseline", [n * costs.base_run for n in x]),
        ("trial, then the candidate", [trial + n * (costs.base_run - costs.saving) for n in x]),
    )
    traces = [
        scatter(
            "lines", x, y, name=name,
            line={"color": style.colour, "width": 2.6, "dash": style.dash},
            hovertemplate="after %{x:.3~g} runs: $%{y:,.4~g}<extra>%{fullData.name}</extra>",
        )
        for style, (name, y) in zip(map(arm_style, (0, 1)), lines, strict=True)
    ]  # fmt: skip
    return _figure(costs, traces, "spent in total, USD")


def _figure(costs: Costs, traces: list[dict[str, Any]], y_title: str, **layout: Any) -> Figure:
    shapes, notes = [line_across(0.0, LIGHT["axis"])], []
    if costs.break_even is not None:
        shapes.append(line_up(costs.break_even, LIGHT["goal"], "dash", 1.6))
        notes.append(label(
            f"paid back after {plural(costs.break_even, 'run')}", LIGHT["goal"],
            x=costs.break_even, xref="x", xanchor="left", xshift=6, y=0.03, yref="paper",
            yanchor="bottom",
        ))  # fmt: skip
    return figure(
        traces,
        x={"title": "production runs after the trial", "showgrid": False, "range": [0, costs.runs]},
        y={"title": y_title, "tickformat": "$,.3~r"},
        shapes=shapes,
        annotations=notes,
        **layout,
    )
