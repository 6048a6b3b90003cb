"""Cost over production runs, and where the trial has paid for itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compilegate.domain.claims import NO_AMOUNT
from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.formats import count, money, money_tick, plural
from compilegate.domain.optional import without_none
from compilegate.report.charts.figure import (
    DASHED,
    Area,
    Chart,
    Figure,
    Line,
    Mark,
    Rule,
    View,
    arm_style,
    axis,
)
from compilegate.report.trial_report import TrialReport

TITLE = "Cost and break-even"


@dataclass(frozen=True)
class Costs:
    """USD; ``trial`` None when unknown, ``spread`` the interval of the saving per run.

    ``break_even`` is the runs after which the trial's cost is back, None when never or unknown;
    ``runs`` is how many production runs are drawn.
    """

    base_run: float
    saving: float
    trial: float | None
    spread: tuple[float, float] | None
    break_even: float | None
    runs: int


def cost_chart(trial: TrialReport) -> Chart:
    """Net saving and total spend over the production runs that follow."""
    costs, claim = _costs(trial), trial.claims.money
    if costs is None:
        why = "Without a measured speed-up and a price per run there is no saving to draw."
        return Chart("cost", TITLE, "", missing=why)
    if not claim.has_amount:
        why = f"No saving is drawn: {NO_AMOUNT[claim]}."
        return Chart("cost", TITLE, "", missing=why)
    return Chart(
        "cost",
        TITLE,
        _finding(costs),
        note="Prices are list prices times billable time, an estimate. "
        + ("" if costs.spread is None else "Band: the interval of the whole job's speed-up."),
        views=[View("Net saving", _net(costs)), View("Total spend", _spend(costs))],
        choice="What to show",
    )


def _costs(trial: TrialReport) -> Costs | None:
    saving, spent = trial.judged.saving, trial.trial_usd
    if saving is None:
        return None
    per_run, base = saving.usd_per_run, saving.usd_per_run_baseline
    year, ends, spread = saving.usd_per_year, saving.interval_usd_per_year, None
    if ends and year:
        spread = (ends[0] * per_run / year, ends[1] * per_run / year)
    per_week = None if trial.evidence is None else trial.evidence.runs_per_week
    yearly = WEEKS_PER_YEAR * (per_week or 0)
    if spent is None or per_run <= 0:
        return Costs(base, per_run, spent, spread, None, int(min(max(yearly, 10), 60)))
    # Enough to see the break-even, at most a year: plans reach no further.
    back = spent / per_run
    runs = max(10, math.ceil(min(3 * back, max(yearly, 1.3 * back))))
    return Costs(base, per_run, spent, spread, back, runs)


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
    style, x, trial = arm_style(1), (0.0, float(costs.runs)), costs.trial or 0.0
    line = Line(x, [n * costs.saving - trial for n in x], style.role)
    if costs.spread is None:
        return _figure(costs, [line], line.y, "saved in total")
    low, high = ([n * end - trial for n in x] for end in costs.spread)
    area = Area(x, low, high, style.role)
    return _figure(costs, [area, line], [*low, *high, *line.y], "saved in total")


def _spend(costs: Costs) -> Figure:
    x, trial = (0.0, float(costs.runs)), costs.trial or 0.0
    base = [n * costs.base_run for n in x]
    candidate = [trial + n * (costs.base_run - costs.saving) for n in x]
    marks = [
        Line(x, y, style.role, dash=style.dash, name=name)
        for style, name, y in (
            (arm_style(0), "stay on the baseline", base),
            (arm_style(1), "trial, then the candidate", candidate),
        )
    ]
    return _figure(costs, marks, [*base, *candidate], "spent in total")


def _figure(
    costs: Costs, marks: Sequence[Mark], values: Iterable[float | None], y_title: str
) -> Figure:
    rules: list[Mark] = [Rule("axis", y=0.0)]
    if costs.break_even is not None:
        paid = f"paid back after {plural(costs.break_even, 'run')}"
        rules.append(Rule("goal", x=costs.break_even, dash=DASHED, name=paid))
    heights = without_none(values)
    return Figure(
        axis("production runs after the trial", (0.0, float(costs.runs)), show=count, room=0),
        axis(y_title, [0.0, *heights], show=money_tick, grid=True),
        [*marks, *rules],
    )
