"""Axes, and the charts of a trial: each mark computed by hand from a few unequal measurements."""

from types import SimpleNamespace as Made

import pytest

from compilegate.domain.claims import MoneyClaim
from compilegate.domain.decision import (
    SavingFigures,
)
from compilegate.domain.formats import UNKNOWN, significant
from compilegate.domain.judging.measured import Block
from compilegate.report.charts.figure import (
    DASHED,
    DOTTED,
    Area,
    Band,
    Bar,
    Interval,
    Label,
    Line,
    Points,
    Rule,
    arm_style,
    axis,
    points_each,
    row_names,
    rows_axis,
    seconds_axis,
    smooth,
    thin,
)
from compilegate.report.charts.speed import (
    cost_chart,
    speedup_chart,
    spread,
    throughput_chart,
    trace_chart,
)


def near(values):
    return pytest.approx(values)


@pytest.mark.parametrize(
    ("values", "keys", "low", "high", "ticks"),
    [
        ([2, 10], {}, 1.52, 10.48, [2, 4, 6, 8, 10]),
        ([10, 2], {"room": 0.25}, 0, 12, [0, 5, 10]),
        ([2, 10], {"from_zero": True}, 0, 10.6, [0, 5, 10]),
        ([-10, -2], {"from_zero": True}, -10.6, 0, [-10, -5, 0]),
        ([-2, 10], {"from_zero": True}, -2.72, 10.72, [0, 5, 10]),
        ([0], {"from_zero": True}, 0, 0.06, [0, 0.02, 0.04, 0.06]),
        ([5], {}, 4.7, 5.3, [4.8, 5, 5.2]),
        ([-5], {}, -5.3, -4.7, [-5.2, -5, -4.8]),
        ([], {"room": 0.5}, -0.5, 0.5, [-0.4, -0.2, 0, 0.2, 0.4]),
        ([-2e-6, 3e-6], {"room": 0}, -2e-6, 3e-6, [-2e-6, -1e-6, 0, 1e-6, 2e-6, 3e-6]),
    ],
)
def test_an_axis_has_its_values_with_room_and_round_ticks(values, keys, low, high, ticks):
    made = axis("title", values, **keys)

    assert ("title", False, False) == (made.title, made.grid, made.logarithmic)
    assert [low, high] == near([made.low, made.high])
    assert [(tick, significant(tick)) for tick in ticks] == list(made.ticks)
    assert axis("", values, grid=True).grid
    assert {f"{tick}!" for tick in ticks} >= {
        text for _, text in axis("", values, show=lambda x: f"{x:g}!", **keys).ticks
    } - {f"{tick:g}!" for tick in ticks}


def test_ticks_finer_than_their_format_have_as_many_digits_as_their_step():
    ticks = axis("", [1.62001, 1.62002]).ticks

    assert [(near(float(text)), text) for text in ("1.62001", "1.620015", "1.62002")] == ticks


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.5, 0.05], ["50 ms", "100 ms", "200 ms", "500 ms"]),
        ([0.01, 1.0], ["10 ms", "30 ms", "100 ms", "300 ms", "1 s"]),
        ([0.001, 0.1, 10.0], ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]),
        ([7.0], ["6 s", "7 s", "8 s", "9 s"]),  # 5 and 10 are beyond it,
    ],
)
def test_an_axis_of_seconds_has_ticks_in_every_decade(values, ticks):
    made = seconds_axis("t", values)

    assert [min(values) * 10**-0.12, max(values) * 10**0.15] == near([made.low, made.high])
    assert ("t", True, True, ticks) == (
        made.title, made.grid, made.logarithmic, [text for _, text in made.ticks],
    )  # fmt: skip
    assert all(made.low <= tick <= made.high for tick, _ in made.ticks)


def test_rows_go_down_and_each_has_its_name_above_it():
    made = rows_axis(3)

    assert [2.55, -0.55] == near([made.low, made.high])
    assert [Label("a", 5.0, 0, above=14), Label("b", 5.0, 1, above=14)] == row_names(["a", "b"], 5)
    assert [1.94, 2.0, 2.06] == near(spread(2, 3, 0.06))
    assert [-0.135, 0.135] == near([spread(0, 10, 0.06)[0], spread(0, 10, 0.06)[-1]])
    assert [] == spread(1, 0, 0.06)


def test_of_long_series_extremes_stay_and_noise_is_smoothed():
    values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]

    assert [(1, 1), (4, 5), (5, 9), (6, 2)] == thin(values, points=4)
    assert list(enumerate(values)) == thin(values, points=10)
    assert [(0, 3), (1, 1), (3, 1), (4, 5), (5, 9), (6, 2), (7, 6), (9, 3)] == thin(
        values, points=9
    )
    assert [240, 240, 40, 24] == [points_each(series) for series in (0, 16, 100, 10_000)]
    squares = [float(n * n) for n in range(400)]
    assert squares[:39] == smooth(squares[:39])
    assert [0.5, 5 / 3, 14 / 3] == near(smooth(squares[:40])[:3])
    # Seven on both sides: the mean of 0 to 49 at first, then 2 (1 + 4 + ... + 49) / 15 more.
    assert [140 / 8, 100 + 280 / 15] == near([smooth(squares)[0], smooth(squares)[10]])


def test_arms_look_different_and_candidates_repeat_after_the_fourth():
    styles = [arm_style(place) for place in range(10)]

    roles = ["first", "second", "third", "fourth"]
    assert ["baseline", *roles, *roles, "first"] == [one.role for one in styles]
    for look in ("role", "symbol", "dash"):
        assert 5 == len({getattr(one, look) for one in styles[:5]}), look
    assert styles[1:5] == styles[5:9]


# Charts of trials. A block of the candidate compiles in its first two steps.


def block(steps, *, warm=2, steady=1.0, samples=None, compiling=0.0):
    run = Made(step_seconds=tuple(steps), samples_per_step=samples, compile_seconds=compiling)
    return Block(run, steady and Made(warm_up_steps=warm, steady_step_seconds=steady))


def arm(name, blocks=None, speedups=None, **more):
    steady = [one.segment.steady_step_seconds for one in (blocks or {}).values() if one.segment]
    return Made(
        name=name, blocks=blocks or {}, speedups=speedups or {},
        steady_step_seconds=sum(steady) / len(steady) if steady else None, **more,
    )  # fmt: skip


def measured(*arms, **more):
    values = {"thresholds": (1.1, 1.2), "price_ratio": 1, "apart": False}
    return Made(arms=arms, candidates=arms[1:], lead=arms[-1] if len(arms) < 3 else arms[1],
                **{**values, **more})  # fmt: skip


def only(chart, view=0):
    return chart.views[view].figure


def test_throughput_is_the_decisions_or_else_the_mean_over_blocks_beside_every_block():
    figures = [Made(name="baseline", samples_per_second=100.0,
                    samples_per_second_interval=(90.0, 125.0)),
               Made(name="compile", samples_per_second=None)]  # fmt: skip
    arms = (
        arm("baseline", {0: block([], steady=0.25, samples=32)}),
        arm("compile", {0: block([], steady=0.25, samples=64), 1: block([], steady=0.5, samples=64),
                        2: block([], steady=None, samples=64), 3: block([], steady=1)}),
        arm("failed"),
    )  # fmt: skip
    chart = throughput_chart(Made(judged=Made(arms=figures)), measured(*arms))
    drawn = only(chart)

    assert [
        Bar(0.0, 100.0, 0, 0.3, "baseline", "baseline: 100 samples/s"),
        Interval(90.0, 125.0, 0, "baseline"),
        Points([128.0], [0.0], "baseline", "circle", ["block 0: 128 samples/s"], 8),
        Bar(0.0, 192.0, 1, 0.3, "first", "compile: 192 samples/s"),
        Points([256.0, 128.0], [0.97, 1.03], "first", "diamond",
               ["block 0: 256 samples/s", "block 1: 128 samples/s"]),
        Points([], [], "second", "square", []),
        *row_names(["baseline", "compile", "failed"], 0.0),
    ] == drawn.marks  # fmt: skip
    assert [0, 256 * 1.06, True, 3 * 58] == [
        drawn.x.low, near(drawn.x.high), drawn.x.grid, drawn.height,
    ]  # fmt: skip
    assert rows_axis(3) == drawn.y
    assert not chart.wide
    assert f"baseline 100; compile 192; failed {UNKNOWN} samples/s." == chart.finding
    without = throughput_chart(Made(judged=Made(arms=())), measured(arms[2], arms[2]))
    assert (bool(without.missing), []) == (True, list(without.views))


def estimate(value, *interval, full_runs=0):
    return Made(estimate=value, interval=interval, target=None, blocks=3, full_runs=full_runs)


TWO = (arm("baseline"), arm("compile", speedups={0: 1.25, 2: 1.5}), arm("other", speedups={2: 1.1}))


def test_speed_ups_stand_in_the_row_of_their_block_and_the_whole_jobs_below():
    speed = estimate(1.3, 1.05, 1.6)
    drawn = only(speedup_chart(Made(judged=Made(speedup=speed)), measured(*TWO)))

    assert [
        Band(1.05, 1.6, "first"),
        Rule("muted", x=1.0, name="no change"),
        Rule("limit", x=1.1, dash=DOTTED, name="min. proven 1.10x"),
        Rule("goal", x=1.2, dash=DASHED, name="min. mean 1.20x"),
        Points([1.25, 1.5], [-0.08, 0.92], "first", "diamond",
               ["compile, block 0: 1.25x", "compile, block 2: 1.50x"], 9, name="compile"),
        Points([1.1], [1.08], "second", "square", ["other, block 2: 1.10x"], 9, name="other"),
        Interval(1.05, 1.6, 2, "first"),
        Points([1.3], [2], "first", "diamond", ["whole job: 1.30x"], 13),
    ] == drawn.marks  # fmt: skip
    assert [(2, "whole job"), (1, "block 2"), (0, "block 0")] == drawn.y.ticks
    assert (2.5, -0.5, 200) == (drawn.y.low, drawn.y.high, drawn.height)
    assert [1 - 0.048, 1.6 + 0.048] == near([drawn.x.low, drawn.x.high])
    assert all(text.endswith("x") for _, text in drawn.x.ticks)


def test_without_an_estimate_the_blocks_stand_alone():
    many = arm("compile", speedups=dict.fromkeys(range(9), 1.25))
    chart = speedup_chart(Made(judged=Made(speedup=None)), measured(arm("baseline"), many))
    drawn = only(chart)

    assert "9 short blocks" in chart.finding
    assert (9, "block 8", 8.5, 9 * 28) == (
        len(drawn.y.ticks), drawn.y.ticks[0][1], drawn.y.low, drawn.height,
    )  # fmt: skip
    assert [Rule, Rule, Rule, Points] == [type(mark) for mark in drawn.marks]
    (points,) = (mark for mark in drawn.marks if isinstance(mark, Points))
    assert ("", [float(n) for n in range(9)]) == (points.name, points.y)
    none = speedup_chart(Made(judged=Made(speedup=None)), measured(arm("baseline"), arm("c")))
    assert (bool(none.missing), []) == (True, list(none.views))


@pytest.mark.parametrize(
    ("interval", "low", "high"),
    [((0.1, 9.0), 0.5, 2.0), ((1.2, 1.3), 1.0, 1.5), ((0.6, 1.9), 0.6, 1.9)],
)
def test_an_interval_makes_the_axis_of_speed_ups_three_times_as_long_at_most(interval, low, high):
    speed = Made(judged=Made(speedup=estimate(1.3, *interval)))
    drawn, room = only(speedup_chart(speed, measured(*TWO))), 0.08 * (high - low)

    assert [low - room, high + room] == near([drawn.x.low, drawn.x.high])
    near_one = measured(arm("baseline"), arm("c", speedups={0: 1.0}), thresholds=(1.0, 1.0))
    drawn = only(speedup_chart(Made(judged=Made(speedup=estimate(1.0, 0.1, 9))), near_one))
    assert [0.9 - 0.016, 1.1 + 0.016] == near([drawn.x.low, drawn.x.high])


def test_the_note_of_the_speed_ups_names_full_runs_and_another_price():
    def note(speed, **more):
        return speedup_chart(Made(judged=Made(speedup=speed)), measured(*TWO, **more)).note

    assert [False, False, True] == [
        "full runs" in note(one)
        for one in (None, estimate(1, 1, 1), estimate(1, 1, 1, full_runs=2))
    ]
    assert "compile costs 1.50 times" in note(None, price_ratio=1.5)
    assert "costs" not in note(None)
    for apart in (True, False):
        chart = speedup_chart(Made(judged=Made(speedup=None)), measured(*TWO, apart=apart))
        assert apart == ("own" in only(chart).y.title)


def test_a_trace_has_each_step_at_its_time_and_shades_what_compiles():
    base = arm("baseline", {0: block([2, 1, 3])})
    ours = arm("compile", {0: block([4, 1, 2.5, 1], warm=3, compiling=2.0)})
    chart = trace_chart(measured(base, ours))
    drawn = only(chart)

    assert [
        Band(0, 7.5, "shade"),  # the third step is the last that takes over two steady ones
        Rule("first", x=7.5, dash=DOTTED, name="warm-up cut (2 s compiling)"),
        Line([0, 2, 3, 6], [2, 1, 3, 3], "baseline", 1.4, stepped=True, name="baseline"),
        Line([0, 4, 5, 7.5, 8.5], [4, 1, 2.5, 1, 1], "first", 1.4, stepped=True, name="compile"),
    ] == drawn.marks
    assert [0, 8.5 * 1.02] == near([drawn.x.low, drawn.x.high])
    assert [10**-0.12, 4 * 10**0.15] == near([drawn.y.low, drawn.y.high])
    assert "Steady step: baseline 1 s, compile 1 s." == chart.finding
    long = [measured(base, arm("compile", {0: block([1.0] * steps)})) for steps in (240, 241)]
    assert [False, True] == ["240 are drawn" in trace_chart(one).note for one in long]


def test_nothing_is_shaded_where_no_early_step_takes_over_two_steady_ones():
    ours = arm("compile", {0: block([2, 1, 9], warm=2)})
    marks = only(trace_chart(measured(arm("baseline"), ours))).marks

    assert Rule("first", x=3.0, dash=DOTTED, name="warm-up cut") == marks[0]
    assert [Rule, Line] == [type(mark) for mark in marks]
    untimed = arm("compile", {0: block([0, 1]), 1: block([])})
    assert trace_chart(measured(arm("baseline"), untimed)).missing
    unsteady = arm("compile", {0: block([1, 2], steady=None)})
    chart = trace_chart(measured(arm("baseline"), unsteady))
    assert [Line] == [type(mark) for mark in only(chart).marks]
    assert "No arm" in chart.finding


@pytest.mark.parametrize(("blocks", "labels"), [(4, ["Block 1", "Block 4"]), (5, ["1", "5"])])
def test_each_block_has_its_view_with_a_short_label_where_there_are_many(blocks, labels):
    ours = arm("compile", {n: block([1.0, 1.0]) for n in range(blocks, 0, -1)})
    views = trace_chart(measured(arm("baseline"), ours)).views

    assert (blocks, *labels) == (len(views), views[0].label, views[-1].label)


def costs(spent, per_run, *, per_week=1.0, ends=None, claim=MoneyClaim.IF_ON, year=None):
    saving = SavingFigures(
        per_run, None, 100.0, 52 * per_run if year is None else year, ends, spent, None, None, None
    )
    return cost_chart(Made(
        judged=Made(saving=saving), claims=Made(money=claim), trial_usd=spent,
        evidence=per_week and Made(runs_per_week=per_week),
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("spent", "per_run", "per_week", "runs", "said"),
    [
        (30.0, 3.0, 1.0, 30, "back after 10 runs"),  # three times what pays it back
        (30.0, 3.0, 0.5, 26, "back after 10 runs"),  # a year
        (30.0, 3.0, 0.2, 13, "back after 10 runs"),  # 1.3 times what pays it back
        (31.5, 3.0, 1.0, 32, "back after 10 runs"),
        (3.0, 3.0, 1.0, 10, "back after 1 run."),  # ten at least
        (None, 3.0, None, 10, "unknown"),
        (None, 3.0, 0.5, 26, "unknown"),
        (None, 3.0, 2.0, 60, "unknown"),
        (30.0, -3.0, 0.5, 26, "$3.00 more: never paid back"),
        (30.0, 0.0, 0.5, 26, "never paid back"),
        (2.0, 0.5, 2.0, 12, "back after 4 runs"),
    ],
)
def test_costs_are_drawn_over_as_many_runs_as_pay_the_trial_back(
    spent, per_run, per_week, runs, said
):
    chart = costs(spent, per_run, per_week=per_week)
    net, spend = only(chart), only(chart, 1)
    words = said.replace("back", "paid back").strip(".")
    paid = [Rule("goal", x=spent / per_run, dash=DASHED, name=words)] if "after" in said else []
    trial = spent or 0.0

    assert said in chart.finding
    assert [Line((0, runs), [-trial, runs * per_run - trial], "first"), Rule("axis", y=0.0),
            *paid] == net.marks  # fmt: skip
    base, ours = spend.marks[:2]
    assert ([0, runs * 100], "7 4", "baseline") == (base.y, base.dash, base.role)
    assert ([trial, trial + runs * (100 - per_run)], "", "first") == (ours.y, ours.dash, ours.role)
    assert [Rule("axis", y=0.0), *paid] == spend.marks[2:]
    assert "candidate" in ours.name
    for drawn in (net, spend):
        assert (0, runs) == (drawn.x.low, drawn.x.high)
        ends = [0, *(y for mark in drawn.marks if isinstance(mark, Line) for y in mark.y)]
        room = 0.06 * (max(ends) - min(ends))
        assert [min(ends) - room, max(ends) + room] == near([drawn.y.low, drawn.y.high])
        assert drawn.y.grid
        assert all("$" in text for _, text in drawn.y.ticks)


def test_the_band_of_the_saving_has_the_ends_of_a_year_for_a_run():
    """$3 a run are $156 a year, so $104 to $208 a year are $2 to $4 a run."""
    chart = costs(30.0, 3.0, ends=(104.0, 208.0))

    assert Area((0, 30), [-30, 30], [-30, 90], "first") == only(chart).marks[0]
    assert [-30 - 7.2, 90 + 7.2] == near([only(chart).y.low, only(chart).y.high])
    assert "Band" in chart.note
    assert "Band" not in costs(30.0, 3.0).note
    assert [Line, Rule, Rule] == [
        type(mark) for mark in only(costs(30.0, 3.0, ends=(1.0, 2.0), year=0.0)).marks
    ]
    for claim in MoneyClaim:
        assert claim.has_amount == bool(costs(30.0, 3.0, claim=claim).views)
