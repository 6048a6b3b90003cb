"""Money saved so far, run by run, against what the trial expected."""

from __future__ import annotations

from itertools import accumulate

from compilegate.domain.formats import money
from compilegate.domain.production.savings import run_savings
from compilegate.report.charts.base import Chart, Frame, View, figure, line_across
from compilegate.report.charts.palette import LIGHT, arm_style
from compilegate.report.history.charts.frame import runs_axis
from compilegate.report.history.view import HistoryView

TITLE = "Saved so far"


def money_chart(view: HistoryView) -> Chart:
    """Sums over the candidate's runs since the latest promotion."""
    if view.promotion is None:
        return Chart("money", TITLE, "", missing="Nothing has been turned on, so nothing is saved.")
    savings_by_run = [
        (view.places[one.run.job], one)
        for one in run_savings(view.runs, since=view.promotion.at)
        if one.usd is not None
    ]
    if not savings_by_run:
        return Chart(
            "money", TITLE, "", missing="No run of the candidate has a price and a baseline yet."
        )
    x, style = [place for place, _ in savings_by_run], arm_style(1)
    saved = {
        "type": "scatter", "mode": "lines+markers", "name": "saved", "x": x,
        "y": list(accumulate(one.usd or 0.0 for _, one in savings_by_run)),
        "line": {"color": style.colour, "width": 2.2, "shape": "hv"}, "marker": {"size": 5},
        "hovertemplate": "after run %{x}: $%{y:.3~g}<extra></extra>",
    }  # fmt: skip
    traces = [saved]
    if view.usd_per_run is not None:
        each = view.usd_per_run
        traces.append({
            "type": "scatter", "mode": "lines", "name": "as the trial expected", "x": x,
            "y": list(accumulate(each * one.compared for _, one in savings_by_run)),
            "line": {"color": LIGHT["baseline"], "width": 1.6, "dash": "dash", "shape": "hv"},
            "hovertemplate": "expected after run %{x}: $%{y:.3~g}<extra></extra>",
        })  # fmt: skip
    frame = Frame(
        x=runs_axis(view), y={"title": "USD", "tickprefix": "$"},
        shapes=[line_across(0.0, LIGHT["axis"])],
    )  # fmt: skip
    return Chart(
        "money", TITLE, _finding(view), views=[View("Money", figure(traces, frame))],
        note="Against the latest baseline runs of that time; a failed run is booked with its cost. "
        "Training alone: what a worse model costs is not in it.",
    )  # fmt: skip


def _finding(view: HistoryView) -> str:
    savings = view.savings
    if savings is None or savings.saved_usd is None:
        return ""
    text = f"{money(savings.saved_usd)} in {savings.priced_runs} runs"
    return text + (f", {money(savings.expected_usd)} expected." if savings.expected_usd else ".")
