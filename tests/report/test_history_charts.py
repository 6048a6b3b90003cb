"""The history's charts: what lies behind the runs, above them, and beside each other."""

from dataclasses import replace
from itertools import pairwise

import pytest

from compilegate.report.charts.figure import Points
from compilegate.report.charts.svg import draw
from compilegate.report.history.charts import bands, charts, marks, runs_axis
from compilegate.report.history.view import Event
from tests.domain.production.run_builder import production_run
from tests.report.histories import ON, REVERTED, flag, view_of


def lived():
    """Two runs before the promotion, four under it, two after the revert."""
    arms = ["baseline"] * 2 + ["compile"] * 4 + ["baseline"] * 2
    runs = [production_run(number, arm) for number, arm in enumerate(arms, 1)]
    return view_of(runs, flag(1, 2, ON), flag(2, 6, REVERTED, by="train", action="revert"))


def test_the_flag_lies_behind_the_runs_that_read_it():
    assert [(2.5, 6.5, "first"), (6.5, 8.5, "limit")] == [
        (band.low, band.high, band.role) for band in bands(lived())
    ]


def event(place, mark):
    return Event(0.0, "flag", "title", place=place, mark=mark)


def test_what_happened_is_a_line_between_the_runs_with_its_name():
    happened = [event(1.5, "on"), event(2.5, None), event(6.5, "off")]

    assert [(1.5, "on"), (6.5, "off")] == [
        (m.x, m.name) for m in marks(lived(), happened, named=True)
    ]
    assert {""} == {mark.name for mark in marks(lived(), happened, named=False)}


@pytest.mark.parametrize(("count", "step"), [(2, 1), (16, 1), (17, 5), (500, 50), (99_999, 100)])
def test_runs_are_whole_numbers_on_the_axis(count, step):
    one = view_of([production_run(1)])
    many = replace(one.history, runs=one.history.runs * count)
    ticks = [at for at, _ in runs_axis(replace(one, history=many)).ticks]

    assert {float(step)} == {b - a for a, b in pairwise(ticks)} or [float(step)] == ticks


def test_the_margin_is_in_view_however_near_the_runs_are():
    runs = [production_run(number, "baseline", metric=1.0) for number in (1, 2)]
    (quality, *_) = charts(view_of(runs), [])

    scale = quality.views[0].figure.y
    assert scale.low < 1.0
    assert scale.high > 1.05


def test_two_charts_stand_side_by_side_and_none_is_left_over():
    drawn = [chart for chart in charts(lived(), []) if chart.views]

    assert ["quality", "wall", "money"] == [chart.id for chart in drawn]
    assert [True, False, False] == [chart.wide for chart in drawn]


def test_before_the_first_run_there_is_nothing_to_draw():
    assert [] == charts(view_of([]), [])


def test_a_text_that_a_team_wrote_is_no_markup_in_a_chart():
    view = view_of([production_run(1, "<b>arm</b>", metric=1.0)])
    (quality, *_) = charts(view, [])

    figure = quality.views[0].figure
    assert "<b>arm</b>" in {mark.name for mark in figure.marks if isinstance(mark, Points)}
    assert "<b>" not in draw(figure, "")
