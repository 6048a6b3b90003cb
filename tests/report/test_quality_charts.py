"""The charts of the loss and of the final metric, computed by hand from a few unequal runs."""

from dataclasses import replace
from types import SimpleNamespace as Made

import pytest

from compilegate.domain.claims import Claims, QualityClaim
from compilegate.domain.decision import (
    EvaluationFinding,
    EvaluationSplit,
    LargerEvaluation,
    QualityFigures,
)
from compilegate.domain.formats import UNKNOWN
from compilegate.domain.judging.measured import Reference
from compilegate.report import statements
from compilegate.report.charts.figure import (
    DASHED,
    DOTTED,
    Bar,
    Interval,
    Label,
    Line,
    Points,
    Rule,
    arm_style,
    points_each,
    row_names,
    rows_axis,
)
from compilegate.report.charts.quality import evaluation_views, loss_chart, quality_chart
from tests.report.test_measured_charts import arm, near, only
from tests.report.test_tables import full, of

# Runs of unequal lengths: at 3 of the steps both of the baseline's were measured.
FIRST = [[1, 4.0, 1.0], [2, 3.0, 3.0], [4, 2.0, 5.0], [8, 1.0, 10.0]]
SECOND = [[1, 6.0, 2.0], [2, 4.0, 4.0], [8, 2.0, 14.0]]
OURS = [[1, 5.0, 0.5], [8, 1.5, 7.0]]


def chart(**arms):
    def of(curves):
        return Made(quality=[full(record={"loss_curve": one}) for one in curves])

    made = [Made(name=name, arm=of(curves)) for name, curves in arms.items()]
    return loss_chart(Made(arms=made))


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
    assert [arm_style(1).dash, arm_style(0).dash] == [mark.dash for mark in marks[3:]]


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

    one = chart(baseline=[FIRST], compile=[untimed])
    assert ("compile" in one.finding, ["Over steps"]) == (False, [v.label for v in one.views])
    neither = chart(baseline=[[point[:2] for point in FIRST]], compile=[untimed]).finding
    assert not any(char.isdigit() for char in neither)


def test_a_loss_that_was_not_recorded_is_a_gap_and_no_part_of_a_mean():
    broken = [[1, 6.0, 2.0], [2, None, 4.0], [8, 2.0, 14.0]]
    drawn = lines(chart(baseline=[FIRST, broken]))

    assert ("", "baseline", [1, 2, 8], [6.0, None, 2.0]) == drawn[1]
    assert ("baseline", "baseline", [1, 8], [5.0, 1.5]) == drawn[2]


def test_an_axis_holds_every_loss_and_the_time_is_the_mean_of_last_steps():
    drawn = chart(baseline=[FIRST, SECOND], compile=[OURS])
    figure = drawn.views[0].figure

    assert [1 - 0.14, 8 + 0.14, 1 - 0.3, 6 + 0.3] == near(
        [figure.x.low, figure.x.high, figure.y.low, figure.y.high]
    )
    assert (False, True) == (figure.x.grid, figure.y.grid)
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


# Every run's final metric, and the difference against the margin.


def quality(goal="minimize", margin=0.5, metrics=(2.0, 3.0, 4.0), **more):
    history, reference, judged = map(more.get, ("history", "reference", "judged"))
    first, second, third = metrics
    made = {
        "baseline": [full(metric=first, seed=17), full(metric=second), full(seed=19)],
        "compile": [full()], "other": [full(metric=third, seed=18)],
    }  # fmt: skip
    arms = [arm(name, compared=runs, arm=Made(quality=[1])) for name, runs in made.items()]
    judge = Made(metric="loss", goal=goal, margin=margin, history=history)
    trial = Made(judged=Made(quality=judged), claims=Claims(quality=QualityClaim.HELD))
    return quality_chart(trial, Made(arms=arms, evidence=Made(quality=judge), reference=reference))


RUNS = [
    Points([2.0, 3.0], [-0.03, 0.03], "baseline", "circle", ["seed 17: 2", f"seed {UNKNOWN}: 3"]),
    Line([2.5, 2.5], [-0.2, 0.3], "baseline"),
    Points([4.0], [1.0], "second", "square", ["seed 18: 4"]),
    Line([4.0, 4.0], [0.8, 1.3], "second"),
]


@pytest.mark.parametrize(("goal", "limit", "low", "high"), [
    ("minimize", 3.0, 2 - 0.12, 4 + 0.12), ("maximize", 1.75, 1.75 - 0.135, 4 + 0.135),
])  # fmt: skip
def test_every_full_run_stands_in_its_arms_row_with_limit_and_reference(goal, limit, low, high):
    margin = 0.5 if goal == "minimize" else 0.75
    drawn = only(quality(goal, margin, reference=Reference(2.5, "mean")))

    assert [
        Rule("limit", x=limit, dash=DOTTED, name=f"limit {limit:g}"),
        Rule("muted", x=2.5, dash=DASHED, name="reference, mean"),
        *RUNS, *row_names(["baseline", "other"], drawn.x.low),
    ] == drawn.marks  # fmt: skip
    assert [low, high] == near([drawn.x.low, drawn.x.high])
    assert (rows_axis(2), 2 * 58) == (drawn.y, drawn.height)
    near_it = Reference(3.3012345, "mean")
    narrow = only(quality(margin=0.001, metrics=(3.2961234, 3.3, 3.306), history=[3.3012345],
                          reference=near_it))  # fmt: skip
    assert "limit 3.302" == narrow.marks[0].name
    assert ["3.3", "3.305"] == [text for _, text in narrow.x.ticks]
    assert [["past run: 3.3012"], ["seed 17: 3.2961", f"seed {UNKNOWN}: 3.3"]] == [
        mark.words for mark in narrow.marks if isinstance(mark, Points)
    ][:2]


def test_past_runs_are_the_first_row_and_the_others_follow():
    drawn = only(quality(history=[1.0, 2.0]))

    assert [
        Points([1.0, 2.0], [-0.03, 0.03], "baseline", "circle", ["past run: 1", "past run: 2"],
               open=True, pale=True),
        Line([1.5, 1.5], [-0.2, 0.3], "baseline", pale=True),
    ] == drawn.marks[:2]  # fmt: skip
    assert ["past runs", "baseline", "other"] == [
        mark.text for mark in drawn.marks if isinstance(mark, Label)
    ]
    assert [0.0, 1.0, 2.0] == [
        round(sum(m.y) / len(m.y), 9) for m in drawn.marks if isinstance(m, Points)
    ]


@pytest.mark.parametrize(
    ("goal", "ends", "band", "scale"),
    [
        ("minimize", (-0.25, 0.75), (0.5, 0.87), (-0.37, 0.87)),
        ("maximize", (-0.25, 0.5), (-0.62, -0.5), (-0.62, 0.62)),
        ("minimize", None, (0.5, 0.56), (-0.06, 0.56)),
    ],
)
def test_the_difference_stands_against_the_margin(goal, ends, band, scale):
    limit = 0.5 if goal == "minimize" else -0.5
    judged = Made(delta=0.125, delta_interval=ends, goal=goal, estimate=None, evaluation=None,
                  confidence=None, interval=None)  # fmt: skip
    chart = quality(goal, judged=judged)
    shaded, margin, equal, *interval, point = only(chart, 1).marks

    assert ("limit", near(list(band))) == (shaded.role, [shaded.low, shaded.high])
    assert ("limit", limit, DOTTED) == (margin.role, margin.x, margin.dash)
    assert Rule("muted", x=0.0, name="equal") == equal
    assert [Interval(*one, 0.0, "first") for one in (ends,) if one] == interval
    assert Points([0.125], [0.0], "first", "diamond", ["+0.12"], 14) == point
    figure = only(chart, 1)
    assert list(scale) == near([figure.x.low, figure.x.high])
    assert (-1, 1, 90) == (figure.y.low, figure.y.high, figure.height)
    assert "No difference in loss" in chart.finding
    assert f"({'lower' if goal == 'minimize' else 'higher'} is better)" in chart.title


@pytest.mark.parametrize(
    ("reference", "confidence", "end"),
    [
        (Reference(2.5, "mean"), 0.98, "against mean; 98% interval."),
        (Reference(2.5, "mean"), None, "against mean."), (None, None, ""),
    ],
)  # fmt: skip
def test_the_finding_says_against_what_and_with_which_confidence(reference, confidence, end):
    judged = of(QualityFigures, metric="loss", goal="minimize", margin=0.2, estimate=-0.125,
                interval=(0.0, 0.25), confidence=confidence)  # fmt: skip
    finding = quality(judged=judged, reference=reference).finding
    words = statements.quality(judged, Claims(quality=QualityClaim.HELD))

    assert finding.lower() == "; ".join(filter(None, [words.lower(), end])).rstrip(".") + "."
    assert finding.startswith("No regression")


def test_where_no_full_run_ended_it_is_said_whether_any_was_made():
    def missing(made):
        arms = [arm("", compared=[full()], arm=Made(quality=runs)) for runs in (made, [])]
        return quality_chart(Made(judged=None), Made(arms=arms)).missing

    assert ["not needed" in missing(made) for made in ([], [1])] == [True, False]


def test_of_the_spread_training_stays_and_the_examples_part_shrinks_with_their_number():
    """Spreads of 5 and 3 are variances of 25 and 9, of 34: 73.5 and 26.5 percent."""
    larger = tuple(LargerEvaluation(n * 1000, 0.0, n * 10) for n in (2, 4, 8, 16, 32))
    split = EvaluationSplit("split", 1000, 6.0, 5.0, 0.0, (None, None), 3.0, None, None, None,
                            None, None, larger)  # fmt: skip
    judged = Made(delta=None, estimate=None, evaluation=split)
    chart = quality(judged=judged)
    _, (name, figure) = [(one.label, one.figure) for one in chart.views]
    assert f"{quality().note} {statements.evaluation_words(split)}" == chart.note
    bars = [mark for mark in figure.marks if isinstance(mark, Bar)]

    assert [near([0, 9 / 34])] * 5 == [[bar.low, bar.high] for bar in bars[::2]]
    assert [near([9 / 34, (9 + 25 / n) / 34]) for n in (1, 2, 4, 8, 16)] == [
        [bar.low, bar.high] for bar in bars[1::2]
    ]
    assert [(row, look) for row in range(5) for look in ("baseline", "first")] == [
        (bar.y, bar.role) for bar in bars
    ]
    assert {(0.3, True)} == {(bar.thick, bar.full) for bar in bars}
    assert ["training itself", "choice of examples", *[""] * 8] == [bar.name for bar in bars]
    assert ["2,000 examples: training 26%", "2,000 examples: choice of examples 37%"] == [
        bar.words for bar in bars[2:4]
    ]
    runs = ["over 500 runs", "20 runs", "40 runs", "80 runs", "160 runs"]
    assert [
        Label(f"{n},000 examples: {words}", 0.0, row, above=14)
        for row, (n, words) in enumerate(zip((1, 2, 4, 8, 16), runs, strict=True))
    ] == [mark for mark in figure.marks if isinstance(mark, Label)]
    assert ("Spread", rows_axis(5), 5 * 58) == (name, figure.y, figure.height)
    assert [0, 1.02, "100%"] == [figure.x.low, near(figure.x.high), figure.x.ticks[-1][1]]
    for nothing in (None, EvaluationFinding("few"), replace(split, spread_of_evaluation=0.0)):
        assert [] == evaluation_views(nothing)
