"""The history's charts, all over the same runs: quality, time, the judge's sums, money."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby

from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import run_reason
from compilegate.domain.formats import count, money, money_tick, number, plural, shown, significant
from compilegate.domain.optional import with_known, without_none
from compilegate.domain.production.savings import failed, run_savings, wall_seconds_of
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements
from compilegate.report.charts.figure import (
    DASHED,
    DOTTED,
    Area,
    ArmStyle,
    Axis,
    Band,
    Chart,
    Figure,
    Line,
    Mark,
    Points,
    Rule,
    View,
    arm_style,
    axis,
)
from compilegate.report.history.view import MOST_SHOWN, Event, HistoryView, Sum

# What the history's charts share: runs along the axis, the flag behind them, events above them.

MOST_TICKS = 16
TICK_STEPS = (1, 5, 10, 50, 100)  # enough for MOST_SHOWN runs
# Background and name of each flag state; off is white.
BANDS = {
    "probation": ("first", "flag on probation"),
    "permanent": ("third", "flag on permanently"),
    "stale": ("shade", "flag stale"),
    "reverted": ("limit", "flag reverted"),
}
MANY_RUNS = 60  # more have smaller markers without words; the table has them


def runs_axis(view: HistoryView) -> Axis:
    """Whole numbers, each run's own while there is room for them."""
    runs, before, last = len(view.runs[view.left_out :]), view.left_out, len(view.runs)
    step = next(step for step in TICK_STEPS if step * MOST_TICKS >= runs)
    first = before - before % step + step
    ticks = [(float(number), count(number)) for number in range(first, last + 1, step)]
    return Axis("production run", before + 0.3, last + 0.7, ticks)


def style_of(view: HistoryView, arm: str) -> ArmStyle:
    """The baseline's, or that of the arm among the candidates by when they first ran."""
    return arm_style(0 if arm == BASELINE else 1 + view.candidates.index(arm))


def bands(view: HistoryView) -> list[Band]:
    """The flag behind the runs that began under it."""
    drawn = []
    states = enumerate(view.states[view.left_out :], view.left_out + 1)
    for state, group in groupby(states, key=lambda item: item[1].state):
        places = [place for place, _ in group]
        if state in BANDS:
            role, name = BANDS[state]
            drawn.append(Band(places[0] - 0.5, places[-1] + 0.5, role, name))
    return drawn


def marks(view: HistoryView, events: Sequence[Event], *, named: bool) -> list[Rule]:
    """Lines where something happened, with names above the plot; of very many the latest."""
    roles = {"good": "goal", "bad": "limit"}
    marked = [(event, event.mark) for event in events if event.mark and event.place > view.left_out]
    return [
        Rule(
            roles.get(event.tone, "muted"), x=event.place, dash=DOTTED,
            name=mark if named else "",
        )
        for event, mark in marked[-MOST_SHOWN:]
    ]  # fmt: skip


def points(
    view: HistoryView, values: Sequence[tuple[ProductionRun, float]], words: Callable[[float], str]
) -> list[Points]:
    """Markers per arm and kind of run: filled as usual, open where it checks an alarm.

    ``words`` say a value.
    """
    many = len(view.runs) > MANY_RUNS
    arms: dict[str, dict[bool, list[tuple[ProductionRun, float]]]] = {}
    for run, y in values:
        arms.setdefault(run.arm, {False: [], True: []})[run.confirm].append((run, y))
    return [
        Points(
            [view.places[run.job] for run, _ in own], [y for _, y in own],
            style_of(view, arm).role, style_of(view, arm).symbol,
            [] if many else [f"{_words(view, run)}\n{words(y)}" for run, y in own],
            size=5 if many else 8, open=confirm,
            name=arm + (" (checks an alarm)" if confirm else ""),
        )
        for arm, kinds in arms.items()
        for confirm, own in kinds.items()
        if own
    ]  # fmt: skip


def _words(view: HistoryView, run: ProductionRun) -> str:
    parts = [f"run {view.places[run.job]}: {run.arm}", run_reason(run.why)]
    if run.details.get("scheduled"):
        parts.append(f"stands for {str(run.details['scheduled'])[:16].replace('T', ' ')}")
    if view.fault_of(run):
        parts.append("with the injected fault")
    return "\n".join(parts)


def rolling_baseline(view: HistoryView, values: Sequence[float | None]) -> Line:
    """The rolling baseline through the runs that are shown; a gap where there is none."""
    places = [view.left_out + place - 0.5 for place in range(1, len(values) + 2)]
    return Line(
        places, [*values, *values[-1:]], "baseline", width=1.6, dash=DASHED, stepped=True,
        name="rolling baseline",
    )  # fmt: skip


WALL, SUMS, MONEY = "Time of full jobs", "The judge's cumulative sums", "Saved so far"


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
    metrics = with_known(view.runs[view.left_out :], view.reached)
    if not metrics:
        return Chart("quality", title, "", missing=f"No run has recorded {view.metric} yet.")
    goal = "higher" if view.quality.get("goal") == "maximize" else "lower"
    baseline = [standard.metric for standard in view.standards[view.left_out :]]
    band = _margin_band(view, baseline)
    # The margin belongs into view: without it two runs that differ by nothing fill the chart.
    seen = [value for _, value in metrics] + [y for area in band for y in (*area.low, *area.high)]
    drawn = Figure(
        runs_axis(view),
        axis(view.metric, seen, room=0.14, grid=True),
        [
            *bands(view), *band, rolling_baseline(view, baseline),
            *marks(view, events, named=True),
            *points(view, metrics, lambda value: f"{view.metric} {value:.5g}"),
        ],
        height=270,
    )  # fmt: skip
    margin = shown(view.quality.get("margin"), significant)
    return Chart(
        "quality", f"{title} ({goal} is better)", _quality_finding(view),
        views=[View("Runs", drawn)],
        note=f"Dashed: mean of the latest baseline runs. Grey band: worse than that by up to the "
        f"margin of {margin}. Background: the state of the flag when the run began.",
        wide=True,
    )  # fmt: skip


def _margin_band(view: HistoryView, baseline: Sequence[float | None]) -> list[Area]:
    """From the rolling baseline to where it would be worse by the margin."""
    margin = number(view.quality.get("margin"))
    values = without_none(baseline)
    if margin is None or not values:
        return []
    worse = margin if view.quality.get("goal") == "minimize" else -margin
    # Once there is a baseline, every later run has one.
    first = view.left_out + len(baseline) - len(values) + 0.5
    places = [first + place for place in range(len(values) + 1)]
    values.append(values[-1])
    limits = [value + worse for value in values]
    return [Area(places, values, limits, "baseline", stepped=True, name="margin")]


def _quality_finding(view: HistoryView) -> str:
    difference, lost = view.quality_difference, sum(failed(run) for run in view.runs)
    text = ""
    if difference is not None:
        text = f"{statements.delta(difference.delta)} on average, against {difference.against}."
    return text + (f" {plural(lost, 'run')} failed and left no figure." if lost else "")


def _wall_chart(view: HistoryView, events: Sequence[Event]) -> Chart:
    """A point per run: seconds, and how many times as fast as the rolling baseline."""
    walls = with_known(view.runs[view.left_out :], wall_seconds_of)
    if not walls:
        return Chart("wall", WALL, "", missing="No run has recorded its wall clock yet.")
    behind: list[Mark] = [*bands(view), *marks(view, events, named=False)]
    standard = [one.wall_seconds for one in view.standards[view.left_out :]]
    times = [value for _, value in walls] + without_none(standard)
    seconds = Figure(
        runs_axis(view),
        axis("seconds, compiling included", times, from_zero=True, grid=True),
        [
            *behind,
            rolling_baseline(view, standard),
            *points(view, walls, lambda value: f"{value:.3g} s"),
        ],
    )
    gains = view.speedups
    views = [View("Wall clock", seconds)]
    values = [(view.runs[place - 1], gain) for place, gain in gains if place > view.left_out]
    if values:
        faster = Figure(
            runs_axis(view),
            axis("speed-up of the whole job", [1.0, *(gain for _, gain in values)], show=ratio,
                 grid=True),
            [*behind, Rule("muted", y=1.0, dash=DASHED),
             *points(view, values, lambda value: f"{value:.2f}x as fast")],
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
    if not any(_shown(view, one) for one in view.sums.values()):
        why = "The watched runs are not among those shown here; the JSON has their sums."
        return Chart("sums", SUMS, "", missing=why)
    return Chart(
        "sums", SUMS, _sums_finding(view.sums),
        note="Each run adds its shortfall against the baseline, minus half of the fall to detect; "
        "a sum never goes below zero. It restarts after an alarm was checked.",
        views=[
            View(f"{key[:1].upper()}{key[1:]}", _sum_figure(view, one))
            for key, one in view.sums.items()
        ],
        choice="Which monitor",
    )  # fmt: skip


def _sum_figure(view: HistoryView, cusum: Sum) -> Figure:
    shown_points = _shown(view, cusum)
    arms = [arm for _, _, arm, _ in shown_points if arm != BASELINE]
    style = style_of(view, arms[0] if arms else BASELINE)
    places, totals = (
        [float(place) for place, *_ in shown_points],
        [total for _, total, *_ in shown_points],
    )
    drawn: list[Mark] = [
        Rule("limit", y=cusum.limit, dash=DOTTED, name=f"alarm above {significant(cusum.limit)}"),
        Line(places, totals, style.role, width=2),
    ]
    for confirming in (False, True):
        own = [(place, total) for place, total, _, confirm in shown_points if confirm is confirming]
        few = own if len(view.runs) <= MANY_RUNS else []
        words = [f"after run {place}: {significant(total, 4)}" for place, total in few]
        x, y = [float(place) for place, _ in own], [total for _, total in own]
        drawn.append(Points(x, y, style.role, "circle", words, 7, open=confirming))
    y_axis = axis(f"sum of falls, {cusum.noun}", [cusum.limit, *totals], from_zero=True, grid=True)
    return Figure(runs_axis(view), y_axis, drawn)


def _shown(view: HistoryView, cusum: Sum) -> list[tuple[int, float, str, bool]]:
    return [point for point in cusum.points if point[0] > view.left_out]


def _sums_finding(sums: Mapping[str, Sum]) -> str:
    parts = []
    for key, cusum in sums.items():
        over = max(total for _, total, *_ in cusum.points) > cusum.limit
        parts.append(f"{key} was {'over' if over else 'never over'} its limit")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _money_chart(view: HistoryView) -> Chart:
    """Sums over the candidate's runs since the latest promotion, against what was expected."""
    if view.promotion is None:
        return Chart("money", MONEY, "", missing="Nothing has been turned on, so nothing is saved.")
    priced = with_known(run_savings(view.runs, view.promotion.at), lambda one: one.usd)
    if not priced:
        why = "No run of the candidate has a price and a baseline yet."
        return Chart("money", MONEY, "", missing=why)
    places = [float(view.places[one.run.job]) for one, _ in priced]
    first = bisect_right(places, view.left_out)
    x, saved = places[first:], list(accumulate(usd for _, usd in priced))[first:]
    if not x:
        why = "No run shown here has a price and a baseline; the sum of all is above."
        return Chart("money", MONEY, "", missing=why)
    words = [f"after run {run:g}: {money(usd)}" for run, usd in zip(x, saved, strict=True)]
    words = words if len(view.runs) <= MANY_RUNS else []
    style = arm_style(1)
    drawn: list[Mark] = [
        Rule("axis", y=0.0),
        Line(x, saved, style.role, width=2.2, stepped=True, name="saved"),
        Points(x, saved, style.role, "circle", words, 5),
    ]
    expected: list[float] = []
    if view.usd_per_run is not None:
        each = view.usd_per_run
        expected = list(accumulate(each * one.compared for one, _ in priced))[first:]
        drawn.append(Line(
            x, expected, "baseline", width=1.6, dash=DASHED, stepped=True,
            name="as the trial expected",
        ))  # fmt: skip
    figure = Figure(
        runs_axis(view), axis("USD", [0.0, *saved, *expected], show=money_tick, grid=True), drawn
    )
    return Chart(
        "money", MONEY, _money_finding(view), views=[View("Money", figure)],
        note="Against the baseline runs near that time; a failed run counts with its cost. "
        "Training alone: what a worse model costs is not included.",
    )  # fmt: skip


def _money_finding(view: HistoryView) -> str:
    savings = view.savings
    if savings is None or savings.saved_usd is None:
        return ""
    text = f"{money(savings.saved_usd)} in {plural(savings.priced_runs, 'run')}"
    return text + (f", {money(savings.expected_usd)} expected." if savings.expected_usd else ".")
