"""The history's charts, all over the same runs: quality, time, the judge's sums, money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from compilegate.domain.arithmetic import ratio
from compilegate.domain.formats import money, number, plural, shown, significant
from compilegate.domain.production.savings import run_savings
from compilegate.domain.workload.model import BASELINE
from compilegate.report.charts.base import (
    LEGEND,
    LIGHT,
    Chart,
    Figure,
    View,
    arm_style,
    figure,
    inert,
    label,
    line_across,
    scatter,
)
from compilegate.report.history.axis import (
    bands,
    marks,
    points,
    rolling_baseline,
    room,
    runs_axis,
    style_of,
)
from compilegate.report.history.metric_cards import speedups
from compilegate.report.history.sentences import quality_difference
from compilegate.report.history.view import Event, HistoryView, Sum, failed

WALL, SUMS, MONEY = "Time of full jobs", "The judge's cumulative sums", "Saved so far"
WATCHES = {"quality": "Quality", "speed": "Speed"}


def charts(view: HistoryView, events: Sequence[Event]) -> list[Chart]:
    """Every chart in reading order; none before the first run."""
    if not view.runs:
        return []
    drawn = [
        _quality_chart(view, events),
        _wall_chart(view, events),
        _sums_chart(view),
        _money_chart(view),
    ]
    beside = [chart for chart in drawn if chart.views and not chart.wide]
    # Two stand side by side; one that is left over fills its line.
    alone = beside[-1] if len(beside) % 2 else None
    return [replace(chart, wide=True) if chart is alone else chart for chart in drawn]


def _quality_chart(view: HistoryView, events: Sequence[Event]) -> Chart:
    """A point per run against the rolling baseline and the margin."""
    title = f"Quality, run by run: {view.metric}"
    metrics = [
        (run, value) for run in view.runs if (value := number(run.result.get("metric"))) is not None
    ]
    if not metrics:
        return Chart("quality", title, "", missing=f"No run has recorded {view.metric} yet.")
    goal = "higher" if view.quality.get("goal") == "maximize" else "lower"
    shapes, names = bands(view)
    lines, mark_names = marks(view, events, named=True)
    baseline = [standard.metric for standard in view.standards]
    band = _margin_band(view, baseline)
    # The margin belongs into view: without it two runs that differ by nothing fill the chart.
    visible = [value for _, value in metrics] + [y for trace in band for y in trace["y"]]
    drawn = figure(
        [
            *band,
            rolling_baseline(baseline),
            *points(view, metrics, f"{inert(view.metric)} %{{y:.5~g}}"),
        ],
        x=runs_axis(view),
        y={"title": inert(view.metric), "range": room(visible)},
        shapes=[*shapes, *lines],
        annotations=[*names, *mark_names],
        # Three rows of names above the plot, the legend under it.
        margin={"l": 56, "r": 18, "t": 56, "b": 84},
        legend={**LEGEND, "y": -0.2, "yanchor": "top"},
    )
    margin = shown(view.quality.get("margin"), significant)
    return Chart(
        "quality", f"{title} ({goal} is better)", _quality_finding(view),
        views=[View("Runs", drawn)],
        note=f"Dashed: mean of the latest baseline runs. Grey band: worse than that by up to the "
        f"margin of {margin}. Background: the state of the flag when the run began.",
        height=400, wide=True,
    )  # fmt: skip


def _margin_band(view: HistoryView, baseline: Sequence[float | None]) -> list[dict[str, Any]]:
    """The band from the rolling baseline to where it would be worse by the margin."""
    margin = number(view.quality.get("margin"))
    if margin is None:
        return []
    worse = margin if view.quality.get("goal") == "minimize" else -margin
    drawn = [(place, value) for place, value in enumerate(baseline, 1) if value is not None]
    places, values = [place for place, _ in drawn], [value for _, value in drawn]
    return [
        scatter("lines", places, values, hoverinfo="skip", showlegend=False,
                line={"width": 0, "shape": "hvh"}),
        scatter("lines", places, [value + worse for value in values], hoverinfo="skip",
                showlegend=True, name="margin", fill="tonexty", fillcolor=LIGHT["baseline_fill"],
                line={"color": LIGHT["limit"], "width": 1.4, "dash": "dot", "shape": "hvh"}),
    ]  # fmt: skip


def _quality_finding(view: HistoryView) -> str:
    difference, lost = quality_difference(view), sum(failed(run) for run in view.runs)
    text = ""
    if difference is not None:
        text = f"The candidate's runs are {difference} on average than the baseline's."
    return text + (f" {plural(lost, 'run')} failed and left no figure." if lost else "")


def _wall_chart(view: HistoryView, events: Sequence[Event]) -> Chart:
    """A point per run: seconds, and how many times as fast as the rolling baseline."""
    walls = [
        (run, value)
        for run in view.runs
        if (value := number(run.result.get("wall_seconds"))) is not None
    ]
    if not walls:
        return Chart("wall", WALL, "", missing="No run has recorded its wall clock yet.")
    shapes, names = bands(view)
    lines, _ = marks(view, events, named=False)
    standard = rolling_baseline([one.wall_seconds for one in view.standards])
    seconds = figure(
        [standard, *points(view, walls, "%{y:.3~g} s")],
        x=runs_axis(view), y={"title": "seconds, compiling included", "rangemode": "tozero"},
        shapes=[*shapes, *lines], annotations=names, showlegend=False,
    )  # fmt: skip
    gains = speedups(view)
    views = [View("Wall clock", seconds)]
    if gains:
        values = [(view.runs[place - 1], gain) for place, gain in gains]
        faster = figure(
            points(view, values, "%{y:.2f}x as fast"),
            x=runs_axis(view), y={"title": "speed-up of the whole job"},
            shapes=[*shapes, *lines, line_across(1.0, LIGHT["muted"], "dash")],
            annotations=names, showlegend=False,
        )  # fmt: skip
        views.append(View("Speed-up", faster))
    return Chart(
        "wall", WALL, _wall_finding(gains), views=views, choice="What to show",
        note="Dashed: the latest baseline runs. A run's speed-up is theirs over its own. "
        "Marks as in the first chart.",
    )  # fmt: skip


def _wall_finding(gains: Sequence[tuple[int, float]]) -> str:
    if not gains:
        return "No run with a compiler has a baseline to be compared with yet."
    values = [gain for _, gain in gains]
    between = f"between {ratio(min(values))} and {ratio(max(values))} as fast as the baseline"
    return f"With a compiler {plural(len(values), 'run')}, {between}."


def _sums_chart(view: HistoryView) -> Chart:
    """How far production has fallen, added up run by run; above the line is an alarm."""
    if not view.sums:
        why = "Nothing has been watched yet: the sums begin with the first run after a promotion."
        return Chart("sums", SUMS, "", missing=why)
    return Chart(
        "sums", SUMS, _sums_finding(view.sums),
        note="Each run adds its shortfall against the baseline, minus half of the fall to detect; "
        "a sum never goes below zero. It restarts after an alarm was checked.",
        views=[View(WATCHES[key], _sum_figure(view, one)) for key, one in view.sums.items()],
        choice="Which watch",
    )  # fmt: skip


def _sum_figure(view: HistoryView, one: Sum) -> Figure:
    arms = [arm for _, _, arm, _ in one.points if arm != BASELINE]
    style = style_of(view, arms[0] if arms else BASELINE)
    line = scatter(
        "lines+markers", [place for place, *_ in one.points],
        [total for _, total, *_ in one.points], showlegend=False,
        line={"color": style.colour, "width": 2},
        marker={
            "size": 7, "color": style.colour,
            "symbol": ["circle-open" if confirm else "circle" for *_, confirm in one.points],
        },
        hovertemplate="after run %{x}: %{y:.4~g}<extra></extra>",
    )  # fmt: skip
    limit = label(
        f"alarm above {significant(one.limit)}", LIGHT["limit"], xref="paper", x=0,
        xanchor="left", yref="y", y=one.limit, yanchor="bottom",
    )  # fmt: skip
    return figure(
        [line],
        x=runs_axis(view),
        y={"title": f"sum of falls, {inert(one.noun)}", "rangemode": "tozero"},
        shapes=[line_across(one.limit, LIGHT["limit"], "dot", 1.6)],
        annotations=[limit],
    )


def _sums_finding(sums: Mapping[str, Sum]) -> str:
    parts = []
    for key, one in sums.items():
        over = max(total for _, total, *_ in one.points) > one.limit
        parts.append(f"{WATCHES[key].lower()} was {'over' if over else 'never over'} its limit")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _money_chart(view: HistoryView) -> Chart:
    """Sums over the candidate's runs since the latest promotion, against what was expected."""
    if view.promotion is None:
        return Chart("money", MONEY, "", missing="Nothing has been turned on, so nothing is saved.")
    priced = [one for one in run_savings(view.runs, since=view.promotion.at) if one.usd is not None]
    if not priced:
        why = "No run of the candidate has a price and a baseline yet."
        return Chart("money", MONEY, "", missing=why)
    x = [view.places[one.run.job] for one in priced]
    traces = [scatter(
        "lines+markers", x, list(accumulate(one.usd or 0.0 for one in priced)), name="saved",
        line={"color": arm_style(1).colour, "width": 2.2, "shape": "hv"}, marker={"size": 5},
        hovertemplate="after run %{x}: $%{y:.3~g}<extra></extra>",
    )]  # fmt: skip
    if view.usd_per_run is not None:
        each = view.usd_per_run
        traces.append(scatter(
            "lines", x, list(accumulate(each * one.compared for one in priced)),
            name="as the trial expected",
            line={"color": LIGHT["baseline"], "width": 1.6, "dash": "dash", "shape": "hv"},
            hovertemplate="expected after run %{x}: $%{y:.3~g}<extra></extra>",
        ))  # fmt: skip
    drawn = figure(
        traces,
        x=runs_axis(view),
        y={"title": "USD", "tickprefix": "$"},
        shapes=[line_across(0.0, LIGHT["axis"])],
    )
    return Chart(
        "money", MONEY, _money_finding(view), views=[View("Money", drawn)],
        note="Against the latest baseline runs of that time; a failed run counts with its cost. "
        "Training alone: what a worse model costs is not included.",
    )  # fmt: skip


def _money_finding(view: HistoryView) -> str:
    savings = view.savings
    if savings is None or savings.saved_usd is None:
        return ""
    text = f"{money(savings.saved_usd)} in {savings.priced_runs} runs"
    return text + (f", {money(savings.expected_usd)} expected." if savings.expected_usd else ".")
