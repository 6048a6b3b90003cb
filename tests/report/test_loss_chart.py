"""The chart of the loss: which points of which runs are drawn, and what its figures are of."""

from types import SimpleNamespace

from compilegate.domain.judging.evidence import FullRun
from compilegate.report.charts.figure import points_each
from compilegate.report.charts.quality import loss_chart

# Runs of unequal lengths: at 3 of the steps both of the baseline's were measured.
FIRST = [[1, 4.0, 1.0], [2, 3.0, 3.0], [4, 2.0, 5.0], [8, 1.0, 10.0]]
SECOND = [[1, 6.0, 2.0], [2, 4.0, 4.0], [8, 2.0, 14.0]]
OURS = [[1, 5.0, 0.5], [8, 1.5, 7.0]]


def full_run(**record):
    return FullRun(
        True, None, record, "quality", 0, "shadow", None, None, None, confirm=False,
        launched_by=None,
    )  # fmt: skip


def chart(**arms):
    def of(curves):
        return SimpleNamespace(quality=[full_run(loss_curve=one) for one in curves])

    made = [SimpleNamespace(name=name, arm=of(curves)) for name, curves in arms.items()]
    return loss_chart(SimpleNamespace(arms=made))


def lines(one, view=0):
    """Name, role and points of each; the thin lines of single runs have no name."""
    return [(m.name, m.role, m.x, m.y) for m in one.views[view].figure.marks]


def test_over_steps_each_run_is_thin_and_each_arms_mean_bold_and_above():
    drawn = chart(baseline=[FIRST, SECOND], compile=[OURS])

    assert ["Over steps", "Over time"] == [view.label for view in drawn.views]
    assert [
        ("", "baseline", [1, 2, 4, 8], [4.0, 3.0, 2.0, 1.0]),
        ("", "baseline", [1, 2, 8], [6.0, 4.0, 2.0]),
        ("", "first", [1, 8], [5.0, 1.5]),
        ("compile", "first", [1, 8], [5.0, 1.5]),
        ("baseline", "baseline", [1, 2, 8], [5.0, 3.5, 1.5]),
    ] == lines(drawn)
    marks = drawn.views[0].figure.marks
    assert [True] * 3 + [False] * 2 == [mark.pale for mark in marks]
    assert {1} == {mark.width for mark in marks[:3]} != {mark.width for mark in marks[3:]}
    assert marks[3].dash != marks[4].dash


def test_over_time_each_point_stands_at_its_seconds_and_the_mean_at_theirs():
    drawn = lines(chart(baseline=[FIRST, SECOND], compile=[OURS]), view=1)

    assert [
        ("", "baseline", [1.0, 3.0, 5.0, 10.0], [4.0, 3.0, 2.0, 1.0]),
        ("", "baseline", [2.0, 4.0, 14.0], [6.0, 4.0, 2.0]),
        ("", "first", [0.5, 7.0], [5.0, 1.5]),
        ("compile", "first", [0.5, 7.0], [5.0, 1.5]),
        ("baseline", "baseline", [1.5, 3.5, 12.0], [5.0, 3.5, 1.5]),
    ] == drawn


def test_an_arm_without_any_time_is_not_given_one():
    untimed = [point[:2] for point in OURS]

    assert "compile" not in chart(baseline=[FIRST], compile=[untimed]).finding
    neither = chart(baseline=[[point[:2] for point in FIRST]], compile=[untimed]).finding
    assert not any(char.isdigit() for char in neither)


def test_a_loss_that_was_not_recorded_is_a_gap_and_no_part_of_a_mean():
    broken = [[1, 6.0, 2.0], [2, None, 4.0], [8, 2.0, 14.0]]
    drawn = lines(chart(baseline=[FIRST, broken]))

    assert ("", "baseline", [1, 2, 8], [6.0, None, 2.0]) == drawn[1]
    assert ("baseline", "baseline", [1, 8], [5.0, 1.5]) == drawn[2]


def test_an_axis_holds_every_loss_and_the_time_is_the_mean_of_last_steps():
    drawn = chart(baseline=[FIRST, SECOND], compile=[OURS])
    scale = drawn.views[0].figure.y

    assert (scale.low < 1, 6 < scale.high < 7) == (True, True)
    assert "baseline 12 s, compile 7 s" in drawn.finding


def test_an_arm_whose_runs_recorded_nothing_leaves_the_others_their_colours():
    drawn = lines(chart(baseline=[[]], compile=[OURS]))

    assert [("", "first"), ("compile", "first")] == [(name, role) for name, role, *_ in drawn]


def test_long_curves_are_thinned_and_keep_their_end():
    points = points_each(2 * 21)
    long = [[step, 1.0 + 1 / step, step / 2] for step in range(1, 10 * points)]
    name, _, x, y = lines(chart(baseline=[long] * 20, compile=[OURS]))[0]

    assert points - 1 <= len(x) <= points
    assert ("", 1, 2.0, *long[-1][:2]) == (name, x[0], y[0], x[-1], y[-1])
