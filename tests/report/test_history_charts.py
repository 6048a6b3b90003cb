"""The history's charts: what lies behind the runs, above them, and beside each other."""

from compilegate.report.charts.figure import Points
from compilegate.report.charts.svg import draw
from compilegate.report.history.charts import bands, charts
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


def test_before_the_first_run_there_is_nothing_to_draw():
    assert [] == charts(view_of([]), [])


def test_a_text_that_a_team_wrote_is_no_markup_in_a_chart():
    view = view_of([production_run(1, "<b>arm</b>", metric=1.0)])
    (quality, *_) = charts(view, [])

    figure = quality.views[0].figure
    assert "<b>arm</b>" in {mark.name for mark in figure.marks if isinstance(mark, Points)}
    assert "<b>" not in draw(figure, "")
