"""The charts of a history: each mark computed by hand from a few unequal runs."""

from dataclasses import replace
from itertools import accumulate

import pytest

from compilegate.domain.formats import MINUS, count, money
from compilegate.domain.production.savings import run_savings
from compilegate.report.charts.figure import (
    DASHED,
    DOTTED,
    Area,
    Band,
    Line,
    Points,
    Rule,
)
from compilegate.report.history.charts import charts, runs_axis
from compilegate.report.history.timeline import timeline
from compilegate.report.history.view import Event, HistoryView, Sum
from tests.domain.production.run_builder import production_run
from tests.report.histories import ON, REVERTED, flag, view_of

BASELINES = [
    production_run(1, "baseline", metric=1.0, wall_seconds=100.0, usd=8.0),
    production_run(2, "baseline", metric=2.0, wall_seconds=200.0, usd=8.0),
]
RUNS = [
    *BASELINES,
    production_run(3, metric=1.5, wall_seconds=75.0, usd=4.0),
    production_run(4, metric=1.25, wall_seconds=50.0, usd=2.0, confirm=True),
    production_run(5, finished=False, metric=None, wall_seconds=None, usd=1.0, counts=False),
    production_run(6, "other", metric=4.5, wall_seconds=300.0, usd=6.0),
]
PROMOTED = flag(1, 2, ON)
EVENTS = [
    Event(0, "flag", "", place=2.5, mark="on", tone="good"),
    Event(0, "flag", "", place=4.0, mark="fell", tone="bad"),
    Event(0, "flag", "", place=4.5, mark="seen"),
    Event(0, "flag", "", place=5.0),
]
STANDARDS = [1.0, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5]  # the last one up to the end of the axis
BEHIND = [Band(2.5, 6.5, "first", "flag on probation")]
PLACES = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]


def near(values):
    return pytest.approx(values)


def drawn(view, events=()):
    return {chart.id: chart for chart in charts(view, events)}


def only(chart, view=0):
    return chart.views[view].figure


def bare(marks):
    """The marks with the first and the last line of the words of each point."""
    return [
        replace(m, words=[(w.split("\n")[0], w.split("\n")[-1]) for w in m.words])
        if isinstance(m, Points) else m
        for m in marks
    ]  # fmt: skip


def rules(*names):
    roles = ("goal", "limit", "muted")
    return [Rule(role, x=x, dash=DOTTED, name=name)
            for role, x, name in zip(roles, (2.5, 4.0, 4.5), names, strict=True)]  # fmt: skip


def points(role, symbol, places, values, said, **more):
    words = [(f"run {x}: {more['name'].partition(' (')[0]}", said(y))
             for x, y in zip(places, values, strict=True)]  # fmt: skip
    return Points(places, values, role, symbol, words, **more)


def test_quality_stands_run_by_run_against_the_rolling_baseline_and_the_margin():
    chart = drawn(view_of(RUNS, PROMOTED), EVENTS)["quality"]
    figure = only(chart)

    def said(value):
        return f"eval_loss {value:g}"

    limits = [value + 0.05 for value in STANDARDS]
    assert [
        *BEHIND,
        Area(PLACES, STANDARDS, limits, "baseline", stepped=True, name="margin"),
        Line(PLACES, STANDARDS, "baseline", 1.6, DASHED, stepped=True, name="rolling baseline"),
        *rules("on", "fell", "seen"),
        points("baseline", "circle", [1, 2], [1.0, 2.0], said, name="baseline"),
        points("first", "diamond", [3], [1.5], said, name="compile"),
        points("first", "diamond", [4], [1.25], said, open=True, name="compile (checks an alarm)"),
        points("second", "square", [6], [4.5], said, name="other"),
    ] == bare(figure.marks)
    assert (chart.wide, "lower is better" in chart.title, 270) == (True, True, figure.height)
    assert [1 - 0.14 * 3.5, 4.5 + 0.14 * 3.5] == near([figure.y.low, figure.y.high])
    assert (0.3, 6.7, True, {}) == (figure.x.low, figure.x.high, figure.y.grid, drawn(view_of([])))
    assert "1 run failed" in chart.finding
    assert "margin of 0.05" in chart.note


def test_a_point_says_what_was_special_about_its_run():
    details = {"scheduled": "2026-09-30T12:34:56Z", "spec_key": "s"}
    run = production_run(1, metric=1.5, details=details)
    (mark,) = only(drawn(view_of([run], faults={"s": "lr"}))["quality"]).marks[1:]

    assert [
        "run 1: compile\nthe flag is on\nstands for 2026-09-30 12:34\nwith the injected fault\n"
        "eval_loss 1.5"
    ] == mark.words


def test_where_more_is_better_the_margin_lies_below_and_is_always_in_view():
    quality = {"metric": "eval_loss", "goal": "maximize", "margin": 5.0}
    runs = [production_run(1, metric=9.0), *(replace(r, result={**r.result}) for r in RUNS[1:2])]
    chart = drawn(view_of(runs, workload={"quality": quality}))["quality"]
    (area,) = (m for m in only(chart).marks if isinstance(m, Area))

    # No baseline before the second run, so the band begins there.
    assert ([1.5, 2.5], [2.0, 2.0], [-3.0, -3.0]) == (area.x, area.low, area.high)
    assert [-3 - 0.14 * 12, 9 + 0.14 * 12] == near([only(chart).y.low, only(chart).y.high])
    assert "higher is better" in chart.title
    (line,) = (m for m in only(chart).marks if isinstance(m, Line))
    assert ([0.5, 1.5, 2.5], [None, 2.0, 2.0]) == (line.x, line.y)
    for unknown in ({**quality, "margin": None}, {}):
        marks = only(drawn(view_of(RUNS, workload={"quality": unknown}))["quality"]).marks
        assert [] == [m for m in marks if isinstance(m, Area)]
    alone = drawn(view_of(RUNS[2:3]))["quality"]
    assert [] == [m for m in only(alone).marks if isinstance(m, Area)]
    assert alone.finding == ""
    missing = drawn(view_of(RUNS[4:5]))["quality"]
    assert ("eval_loss" in missing.missing, []) == (True, list(missing.views))


def test_times_stand_in_seconds_and_against_the_rolling_baseline():
    chart = drawn(view_of(RUNS, PROMOTED), EVENTS)["wall"]
    seconds, faster = only(chart), only(chart, 1)
    walls = [100.0, 150.0, 150.0, 150.0, 150.0, 150.0, 150.0]

    def said(value):
        return f"{value:g} s"

    def times(value):
        return f"{value:.2f}x as fast"

    assert [
        *BEHIND, *rules("", "", ""),
        Line(PLACES, walls, "baseline", 1.6, DASHED, stepped=True, name="rolling baseline"),
        points("baseline", "circle", [1, 2], [100.0, 200.0], said, name="baseline"),
        points("first", "diamond", [3], [75.0], said, name="compile"),
        points("first", "diamond", [4], [50.0], said, open=True, name="compile (checks an alarm)"),
        points("second", "square", [6], [300.0], said, name="other"),
    ] == bare(seconds.marks)  # fmt: skip
    assert (0, near(318), True) == (seconds.y.low, seconds.y.high, seconds.y.grid)
    assert [
        *BEHIND, *rules("", "", ""), Rule("muted", y=1.0, dash=DASHED),
        points("first", "diamond", [3], [2.0], times, name="compile"),
        points("first", "diamond", [4], [3.0], times, open=True, name="compile (checks an alarm)"),
        points("second", "square", [6], [0.5], times, name="other"),
    ] == bare(faster.marks)  # fmt: skip
    assert [0.5 - 0.15, 3.15, True] == [near(faster.y.low), near(faster.y.high), faster.y.grid]
    assert "3 runs, between 0.50x and 3.00x as fast" in chart.finding
    assert {"x"} == {text[-1] for _, text in faster.y.ticks}
    slowest = only(drawn(view_of([*BASELINES, production_run(3, wall_seconds=37.5)]))["wall"], 1)
    assert 1.0 - 0.06 * 3 == near(slowest.y.low)
    assert ["Wall clock", "Speed-up"] == [view.label for view in chart.views]
    alone = drawn(view_of(BASELINES))["wall"]
    assert (1, True) == (len(alone.views), "No run with a compiler" in alone.finding)
    assert drawn(view_of(RUNS[4:5]))["wall"].missing


def summed(view, *points, limit=4.0, key="quality"):
    view.__dict__["sums"] = {key: Sum(key, "losses", limit, 0.5, list(points))}
    return drawn(view)["sums"]


@pytest.mark.parametrize(("top", "over"), [(3.0, "never over"), (4.0, "never over"), (4.5, "over")])
def test_sums_rise_to_their_limit_and_runs_that_check_an_alarm_are_open(top, over):
    made = [(1, 0.0, "baseline", False), (3, 2.5, "other", False), (4, top, "other", True)]
    chart = summed(view_of(RUNS), *made)
    figure = only(chart)

    assert [
        Rule("limit", y=4.0, dash=DOTTED, name="alarm above 4"),
        Line([1.0, 3.0, 4.0], [0.0, 2.5, top], "second", 2),
        Points([1.0, 3.0], [0.0, 2.5], "second", "circle",
               ["after run 1: 0", "after run 3: 2.5"], 7),
        Points([4.0], [top], "second", "circle", [f"after run 4: {top:g}"], 7, open=True),
    ] == figure.marks  # fmt: skip
    assert (f"Quality was {over} its limit.", "Quality") == (chart.finding, chart.views[0].label)
    assert [0, max(4.0, top) * 1.06, True] == [figure.y.low, near(figure.y.high), figure.y.grid]
    assert "losses" in figure.y.title
    of_baseline = only(summed(view_of(RUNS), *made[:1]))
    assert {"baseline"} == {m.role for m in of_baseline.marks[1:]}
    assert drawn(view_of(RUNS))["sums"].missing


def priced():
    """Six runs of each arm in turn, of several prices."""
    return [
        production_run(n, "compile" if n % 2 == 0 else "baseline", usd=10.0 + n % 5)
        for n in range(1, 13)
    ]


def test_money_is_added_up_run_by_run_beside_what_the_trial_expected():
    view = view_of(priced(), flag(1, 3, ON))
    singles = [one.usd for one in run_savings(view.runs, view.promotion.at)]
    places, saved = [4.0, 6.0, 8.0, 10.0, 12.0], list(accumulate(singles))
    chart = drawn(view)["money"]

    assert 5 == len(set(saved))
    assert [
        Rule("axis", y=0.0),
        Line(places, saved, "first", 2.2, stepped=True, name="saved"),
        Points(places, saved, "first", "circle",
               [f"after run {n:g}: {money(usd)}" for n, usd in zip(places, saved, strict=True)], 5),
    ] == only(chart).marks  # fmt: skip
    ends = [min(0, *saved), max(0, *saved)]
    room = 0.06 * (ends[1] - ends[0])
    assert [ends[0] - room, ends[1] + room] == near([only(chart).y.low, only(chart).y.high])
    assert only(chart).y.grid
    assert "$" in "".join(text for _, text in only(chart).y.ticks)
    assert f"{money(saved[-1])} in 5 runs." == chart.finding
    assert "turned on" in drawn(view_of(RUNS))["money"].missing
    assert "price" in drawn(view_of([production_run(3, usd=None)], PROMOTED))["money"].missing
    assert (
        f"{MINUS}$1.00 in 1 run."
        == drawn(view_of([*BASELINES, RUNS[4]], PROMOTED))["money"].finding
    )


def test_what_the_trial_expected_stands_beside_what_was_saved(monkeypatch):
    monkeypatch.setattr(HistoryView, "usd_per_run", 100.0)
    view = view_of([*priced(), production_run(13, finished=False, usd=3.0)], flag(1, 3, ON))
    shares = [one.compared for one in run_savings(view.runs, view.promotion.at)]
    chart = drawn(view)["money"]
    (_, saved, _, expected) = only(chart).marks

    assert Line(
        saved.x, near([100 * share for share in accumulate(shares)]), "baseline", 1.6, DASHED,
        stepped=True, name="as the trial expected",
    ) == expected  # fmt: skip
    assert only(chart).y.high == near(max(expected.y) + 0.06 * (max(expected.y) - min(0, *saved.y)))
    assert f" runs, {money(expected.y[-1])} expected." in chart.finding


@pytest.mark.parametrize(
    ("count_", "left_out", "ticks"),
    [(1, 0, [1]), (16, 0, range(1, 17)), (17, 0, range(5, 18, 5)), (80, 0, range(5, 81, 5)),
     (81, 0, range(10, 81, 10)), (160, 0, range(10, 161, 10)), (161, 0, range(50, 161, 50)),
     (1016, 16, range(100, 1017, 100)), (1100, 100, range(200, 1101, 100))],
)  # fmt: skip
def test_the_runs_axis_has_at_most_sixteen_whole_numbers(count_, left_out, ticks):
    one = view_of([production_run(1)])
    axis = runs_axis(replace(one, history=replace(one.history, runs=one.history.runs * count_)))

    assert [(float(n), count(n)) for n in ticks] == axis.ticks
    assert (left_out + 0.3, count_ + 0.7) == (axis.low, axis.high)


def cut(mark, first):
    """The part of a mark from a run on."""
    match mark:
        case Band():
            return replace(mark, low=max(mark.low, first - 0.5)) if mark.high > first else None
        case Rule(x=float(x)) | Rule(x=int(x)):
            return mark if x > first - 1 else None
        case Line() | Area() | Points():
            edge = isinstance(mark, Area) or "rolling" in mark.name
            kept = [n for n, x in enumerate(mark.x) if x >= first - (0.5 if edge else 0)]
            lists = {
                key: [value[n] for n in kept] for key, value in vars(mark).items()
                if key in ("x", "y", "low", "high", "words") and value
            }  # fmt: skip
            return replace(mark, **lists) if kept or not mark.name else None
    return mark


@pytest.mark.parametrize("left_out", [1, 2, 3])
def test_a_page_of_the_latest_runs_draws_the_same_of_them(left_out, monkeypatch):
    entries = [PROMOTED, flag(2, 4, REVERTED, by="train", action="revert"), flag(3, 5, ON)]
    made = (
        (1, 0.0, "compile", False), (3, 2.5, "compile", False), (4, 3.5, "compile", True),
        (6, 1.0, "other", False),
    )  # fmt: skip
    pages = []
    for most in (1000, 6 - left_out):
        monkeypatch.setattr("compilegate.report.history.view.MOST_SHOWN", most)
        view = view_of(RUNS, *entries)
        view.__dict__["sums"] = {"quality": Sum("quality", "", 4.0, 0.5, list(made))}
        pages.append(drawn(view, timeline(view).events))
    whole, part = pages

    assert whole.keys() == part.keys()
    for key, chart in whole.items():
        assert chart.finding == part[key].finding
        for view, other in zip(chart.views, part[key].views, strict=True):
            expected = [cut(mark, left_out + 1) for mark in view.figure.marks]
            assert [mark for mark in expected if mark] == other.figure.marks, key
            assert left_out + 0.3 == other.figure.x.low


def test_a_page_without_any_run_of_a_kind_says_that_earlier_ones_are_not_shown(monkeypatch):
    monkeypatch.setattr("compilegate.report.history.view.MOST_SHOWN", 2)
    later = [production_run(n, "baseline") for n in (13, 14)]
    view = view_of([*priced(), *later], PROMOTED)
    chart = summed(view, (3, 2.5, "compile", False))

    assert ("not among" in chart.missing, []) == (True, list(chart.views))
    assert "No run shown" in drawn(view)["money"].missing
    view.__dict__["sums"] |= {"speed": Sum("speed", "", 4.0, 0.5, [(13, 2.5, "compile", False)])}
    assert not drawn(view)["sums"].missing


@pytest.mark.parametrize(("runs", "size", "said"), [(60, 8, True), (61, 5, False)])
def test_very_many_runs_have_smaller_markers_without_words(runs, size, said):
    made = [production_run(n, "compile" if n % 2 else "baseline") for n in range(1, runs + 1)]
    view = view_of(made, PROMOTED)
    view.__dict__["sums"] = {"q": Sum("q", "", 4.0, 0.5, [(3, 2.5, "compile", False)])}
    shown = drawn(view)
    quality = [m for m in only(shown["quality"]).marks if isinstance(m, Points)]

    assert {(size, said)} == {(m.size, bool(m.words)) for m in quality}
    for key in ("sums", "money"):
        of = [m for m in only(shown[key]).marks if isinstance(m, Points) and m.x]
        assert {said} == {bool(m.words) for m in of}


def test_a_chart_that_would_stand_alone_fills_its_line():
    three, two = view_of(priced(), PROMOTED), view_of(priced(), PROMOTED)
    three.__dict__["sums"] = {"q": Sum("q", "", 4.0, 0.5, [(3, 2.5, "compile", False)])}

    wide = [[chart.id for chart in charts(view, []) if chart.wide] for view in (three, two)]
    assert [["quality", "money"], ["quality"]] == wide
    assert ["quality", "wall"] == [c.id for c in charts(view_of(BASELINES), []) if c.wide]


def test_bands_name_each_state_that_the_flag_was_in_but_off():
    states = ("probation", "permanent", "stale", "reverted")
    changes = [
        flag(n, n, replace(ON, state=state, enabled=state != "reverted"))
        for n, state in enumerate(states, 1)
    ]
    figure = only(drawn(view_of(RUNS, *changes))["quality"])

    assert [
        Band(1.5, 2.5, "first", "flag on probation"),
        Band(2.5, 3.5, "third", "flag on permanently"),
        Band(3.5, 4.5, "shade", "flag stale"),
        Band(4.5, 6.5, "limit", "flag reverted"),
    ] == [mark for mark in figure.marks if isinstance(mark, Band)]
