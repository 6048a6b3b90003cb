"""What the history page is made from: places, states, standards, and what each figure is of."""

from dataclasses import replace

import pytest

from compilegate.domain.formats import money
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import RegistrationChange, Review
from compilegate.domain.records.trials import TrialDecided
from compilegate.report.charts.figure import Points
from compilegate.report.charts.svg import draw
from compilegate.report.history.charts import bands, charts, runs_axis
from compilegate.report.history.render import headline, label, lede, metric_cards
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.report.histories import ON, REVERTED, WORKLOAD, flag, view_of
from tests.usecases.production_builder import trial_evidence


def runs(*arms, **more):
    return [production_run(number, arm, **more) for number, arm in enumerate(arms, 1)]


def test_the_state_is_that_of_the_flag_when_the_run_began():
    arms = ("baseline", "baseline", "compile", "compile", "baseline")
    view = view_of(
        runs(*arms),
        flag(1, 1, ON),
        {**flag(2, 3, REVERTED), "at": int(BEGIN + 4 * DAY)},  # as the fourth begins
        {**flag(3, 4, ON), "at": int(BEGIN + 5 * DAY + 100)},  # while the fifth trains
    )
    unchanged = view_of(runs("baseline", "baseline"))

    states = ["off", "probation", "probation", "reverted", "reverted"]
    assert states == [one.state for one in view.states]
    assert ["off", "off"] == [one.state for one in unchanged.states]
    assert (None, [], None, ()) == (
        unchanged.promotion, list(unchanged.since_promotion), unchanged.savings,
        tuple(unchanged.reviews),
    )  # fmt: skip


def test_a_standard_is_the_mean_of_the_latest_five_baseline_runs_that_count():
    made = [production_run(n, "baseline", metric=n, wall_seconds=10 * n) for n in range(1, 8)]
    lost = {"metric": 99.0, "wall_seconds": 999}
    made += [production_run(8, "baseline", counts=False, **lost)]
    made += [production_run(9, "baseline", finished=False, **lost)]
    standards = view_of([*made, production_run(10, "compile", **lost)]).standards

    assert [1, 1.5, 2, 2.5, 3, 4, 5, 5, 5, 5] == [one.metric for one in standards]
    assert [10, 15, 20, 25, 30, 40, 50, 50, 50, 50] == [one.wall_seconds for one in standards]


def test_until_production_has_a_baseline_the_trials_stands_in_from_the_promotion_on():
    evidence = trial_evidence()
    made = view_of(runs("compile", "compile"), flag(1, 1, ON), evidence=evidence)
    full = [run for run in evidence["arms"][0]["runs"] if run["stage"] == "quality"]
    own = [*evidence["quality"]["history"], *(run["metric"] for run in full)]

    before, after = (one.metric for one in made.standards)
    assert (None, pytest.approx(sum(own[-5:]) / 5)) == (before, after)


def test_a_fault_is_that_of_the_runs_spec_and_never_the_baselines():
    faulty = {"details": {"spec_key": "faulty"}}
    made = [production_run(1, "compile", **faulty), production_run(2, "baseline", **faulty)]
    view = view_of([*made, production_run(3, "compile")], faults={"faulty": "f"})

    assert [1] == [view.places[run.job] for run in view.faulty]


def test_figures_since_the_promotion_leave_out_the_runs_before_it():
    made = runs("compile", "baseline", "compile", "compile", "baseline")
    promoted = {**flag(1, 2, ON), "at": int(BEGIN + 3 * DAY)}  # as the third starts
    view = view_of(made, promoted, flag(2, 4, REVERTED, by="train", action="revert"))

    assert [3, 4, 5] == [view.places[run.job] for run in view.since_promotion]
    assert "3 compile, 2 baseline" == metric_cards(view)[1].note
    assert (2, 1) == (view.savings.runs, view.promotion.version)
    assert not view.history.flag.enabled


@pytest.mark.parametrize(
    ("evidence", "workload", "metric"),
    [
        ({"quality": {"metric": "of evidence"}}, WORKLOAD, "of evidence"),
        (None, WORKLOAD, "eval_loss"),
        ({"quality": {}}, WORKLOAD, "eval_loss"),
        (None, None, "the metric"),
    ],
)
def test_the_metric_is_of_the_latest_record_that_names_one(evidence, workload, metric):
    assert metric == view_of([], evidence=evidence, workload=workload).metric


@pytest.mark.parametrize(("name", "shown"), [("eval_loss", 0.9), ("f1", None), (None, 0.9)])
def test_what_a_run_reached_of_another_metric_is_no_figure_of_this_one(name, shown):
    run = production_run(1, metric=0.9, metric_name=name)

    assert shown == view_of([run]).reached(run)


@pytest.mark.parametrize(("active", "registered"), [([True, False], True), ([False], False)])
def test_it_was_registered_if_it_ever_was(active, registered):
    changes = [
        RegistrationChange(revision=number, active=one, at=number, by="human:ada").to_entry()
        for number, one in enumerate(active, 1)
    ]

    assert registered is ("is registered" in headline(view_of([], *changes)))


@pytest.mark.parametrize("evidence", [None, {"schema": 99}])
def test_without_evidence_that_can_be_read_there_are_no_sums(evidence):
    view = view_of(runs("compile"), evidence=evidence)

    assert (None, {}) == (view.probation, view.sums)


def decided(number, verdict, *reasons):
    at = BEGIN + number * DAY
    return TrialDecided(at, f"trial{number}", verdict, "key", reasons=reasons).to_entry()


def reviewed(number, verdict, **more):
    return Review(
        int(BEGIN + number * DAY), f"r{number}", "t1", "compile", verdict=verdict, **more
    ).to_entry()


ALARM_SEEN = {"reasons": (Reason("alarm", "the alarm of run 9"),)}
BY_ANN = {"by": "human:ann", "action": "revert", "reason": "too hot"}
BY_TRAIN = {"by": "train", "action": "revert", "reason": "it fell"}
STANDS = {
    "by hand after the review": (
        [flag(1, 1, ON), flag(2, 2, REVERTED, **BY_TRAIN), flag(3, 3, ON),
         flag(4, 4, REVERTED, **BY_ANN)],
        "Turned off by hand", ["ann", "too hot"], ["it fell"],
    ),
    "by the review after a hand": (
        [flag(1, 1, ON), flag(2, 2, REVERTED, **BY_ANN), flag(3, 3, ON),
         flag(4, 4, REVERTED, **BY_TRAIN)],
        "Turned back off", ["it fell"], ["ann", "too hot"],
    ),
    "an alarm in the last review": (
        [flag(1, 1, ON), reviewed(3, "continue"), reviewed(4, "continue", **ALARM_SEEN)],
        "Alarm being checked", ["the alarm of run 9"], [],
    ),
    "an alarm that has been cleared": (
        [flag(1, 1, ON), reviewed(3, "first", **ALARM_SEEN), reviewed(4, "second")],
        "On probation", ["second"], ["first", "the alarm of run 9"],
    ),
    "several trials": (
        [decided(1, "invalid", "the first reason."), decided(2, "stay_off", "the last.", "more")],
        "Not started", ["trial2", "the last"], ["trial1", "the first reason", "more"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entries", "state", "named", "unnamed"), STANDS.values(), ids=STANDS)
def test_where_it_stands_follows_from_what_came_last(entries, state, named, unnamed):
    view = view_of([], *entries)
    text = " ".join([headline(view), *lede(view)])

    assert state == label(view).text
    assert ([], []) == ([w for w in named if w not in text], [w for w in unnamed if w in text])


def test_what_was_saved_is_shown_with_its_interval():
    made = [replace(run, usd=10.0 + place % 5) for place, run in enumerate(
        runs(*["baseline", "compile"] * 6))]  # fmt: skip
    view = view_of(made, flag(1, 0, ON))
    (card,) = [card for card in metric_cards(view) if card.name == "Saved so far"]

    low, high = view.savings.interval_usd
    assert low < (view.savings.saved_usd or 0) < high
    assert f"{money(low)} to {money(high)} with 90 % confidence" in card.note


def lived():
    """Two runs before the promotion, four under it, two after the revert."""
    arms = ["baseline"] * 2 + ["compile"] * 4 + ["baseline"] * 2
    runs = [production_run(number, arm) for number, arm in enumerate(arms, 1)]
    return view_of(runs, flag(1, 2, ON), flag(2, 6, REVERTED, by="train", action="revert"))


def test_the_flag_lies_behind_the_runs_that_read_it():
    assert [(2.5, 6.5, "first"), (6.5, 8.5, "limit")] == [
        (band.low, band.high, band.role) for band in bands(lived())
    ]


@pytest.mark.parametrize(("count", "step"), [(2, 1), (17, 5), (500, 50)])
def test_runs_are_whole_numbers_on_the_axis(count, step):
    one = view_of([production_run(1)])
    many = replace(one.history, runs=one.history.runs * count)
    first, second, *_ = runs_axis(replace(one, history=many)).ticks

    assert step == second[0] - first[0]


def test_before_the_first_run_there_is_nothing_to_draw():
    assert [] == charts(view_of([]), [])


def test_a_text_that_a_team_wrote_is_no_markup_in_a_chart():
    view = view_of([production_run(1, "<b>arm</b>", metric=1.0)])
    (quality, *_) = charts(view, [])

    figure = quality.views[0].figure
    assert "<b>arm</b>" in {mark.name for mark in figure.marks if isinstance(mark, Points)}
    assert "<b>" not in draw(figure, "")
