"""What the history page is made from: places, states, standards, and what each figure is of."""

from dataclasses import replace

import pytest

from compilegate.domain.formats import money
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import RegistrationChange, Review
from compilegate.domain.records.trials import TrialDecided
from compilegate.report.history import view as module
from compilegate.report.history.render import headline, label, lede, metric_cards
from compilegate.report.history.timeline import timeline
from compilegate.report.history.view import fault_in
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.report.histories import OFF, ON, REVERTED, WORKLOAD, flag, view_of
from tests.usecases.production_builder import trial_evidence


def runs(*arms, **more):
    return [production_run(number, arm, **more) for number, arm in enumerate(arms, 1)]


@pytest.mark.parametrize(
    ("at", "place"),
    [
        (0, 0.5),
        (BEGIN + DAY - 1, 0.5),
        (BEGIN + DAY, 1.5),  # the second in which a run starts is after it has
        (BEGIN + 2.5 * DAY, 2.5),
        (BEGIN + 3 * DAY, 3.5),
        (BEGIN + 99 * DAY, 3.5),
    ],
)
def test_a_moment_lies_after_the_runs_that_have_started(at, place):
    assert place == view_of(runs("baseline", "compile", "compile")).place_at(at)


def test_a_job_stands_by_its_start_and_a_review_after_the_last_job_of_its_run():
    first, second = runs("baseline", "compile")
    again = replace(first, job="again", started_at=BEGIN + 5 * DAY, ended_at=BEGIN + 6 * DAY)
    view = view_of([again, second, first])  # as they were recorded
    other = Review(int(BEGIN + 2.5 * DAY), "unknown", "t1")

    assert {first.job: 1, second.job: 2, "again": 3} == view.places
    assert 3.5 == view.place_of(Review(1, first.run, "t1"))
    assert 2.5 == view.place_of(Review(1, second.run, "t1"))
    assert 2.5 == view.place_of(other)


def test_the_codes_before_a_review_are_those_of_the_same_trial():
    def review(at, run, trial, *codes):
        return Review(at, run, trial, reasons=tuple(Reason(code, code) for code in codes))

    reviews = [
        review(1, "r1", "t1", "alarm", "weak"),
        review(2, "r2", "t2", "other"),
        review(3, "r3", "t1", "alarm_cleared"),
        review(4, "r4", "t1"),
        review(4, "r5", "t1"),
    ]
    view = view_of([], *(one.to_entry() for one in reversed(reviews)))

    assert [set(), set(), {"alarm", "weak"}, {"alarm_cleared"}, set()] == [
        set(view.codes_before[one.key]) for one in reviews
    ]


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


# Runs as arm, metric, wall clock and what else is true of them; the standards after each.
STANDARDS = {
    "the mean of what was recorded": (
        [("baseline", 1.0, 100), ("baseline", 3.0, 300), ("compile", 9.0, 9),
         ("baseline", 5.0, None), ("baseline", None, 500)],
        [1.0, 2.0, 2.0, 3.0, 3.0], [100, 200, 200, 200, 300],
    ),
    "of runs that count and finished": (
        [("baseline", 1.0, 100), ("baseline", 99.0, 9999, {"counts": False}),
         ("baseline", 99.0, 9999, {"finished": False})],
        [1.0, 1.0, 1.0], [100, 100, 100],
    ),
    "the latest five": (
        [("baseline", float(n), 10 * n) for n in range(1, 8)],
        [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0], [10, 15, 20, 25, 30, 40, 50],
    ),
    "a metric and no time need no stand-in of the trial's": (
        [("baseline", 0.5, None), ("compile", 0.5, None)], [0.5, 0.5], [None, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STANDARDS)
def test_a_standard_is_the_mean_of_the_latest_baseline_runs_that_count(case):
    figures, metrics, walls = STANDARDS[case]
    made = [
        production_run(number, arm, metric=metric, wall_seconds=wall, **dict(*more))
        for number, (arm, metric, wall, *more) in enumerate(figures, 1)
    ]
    standards = view_of(made, flag(1, 1, ON), evidence=trial_evidence()).standards

    assert metrics == [one.metric for one in standards]
    assert walls == [one.wall_seconds for one in standards]


@pytest.mark.parametrize("before", [True, False])
def test_until_production_has_a_baseline_the_trials_stands_in_from_the_promotion_on(before):
    evidence = trial_evidence()
    made = runs("baseline" if before else "compile", "compile", "compile", metric=0.5)
    view = view_of(made, flag(1, 1, ON), evidence=evidence)
    full = [run for run in evidence["arms"][0]["runs"] if run["stage"] == "quality"]
    own = [*evidence["quality"]["history"], *(run["metric"] for run in full)]

    metrics = [one.metric for one in view.standards]

    assert [0.5, 0.5, 0.5] == metrics if before else metrics[0] is None
    if not before:
        assert pytest.approx(sum(own[-5:]) / 5) == metrics[1] == metrics[2]


def test_figures_since_the_promotion_leave_out_the_runs_before_it():
    made = runs("compile", "baseline", "compile", "compile", "baseline")
    promoted = {**flag(1, 2, ON), "at": int(BEGIN + 3 * DAY)}  # as the third starts
    view = view_of(made, promoted, flag(2, 4, REVERTED, by="train", action="revert"))

    assert [3, 4, 5] == [view.places[run.job] for run in view.since_promotion]
    assert "3 compile, 2 baseline" == metric_cards(view)[1].note
    assert (2, 1) == (view.savings.runs, view.promotion.version)
    assert not view.history.flag.enabled


def test_reviews_are_those_of_the_latest_promotion():
    reviews = [Review(int(BEGIN + day * DAY), f"r{day}", trial)
               for day, trial in ((1, "t1"), (3, "t1"), (4, "t2"), (5, "t1"))]  # fmt: skip
    view = view_of(runs("baseline"), flag(1, 2, ON), *(one.to_entry() for one in reviews))

    assert ["r3", "r5"] == [one.run for one in view.reviews]


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


def test_a_fault_is_that_of_the_runs_spec_and_never_the_baselines():
    made = [
        production_run(1, "compile", details={"spec_key": "faulty"}),
        production_run(2, "baseline", details={"spec_key": "faulty"}),
        production_run(3, "compile", details={"spec_key": "sound"}),
        production_run(4, "compile"),
    ]
    view = view_of(made, faults={"faulty": "learning_rate:0.2"})

    assert ["learning_rate:0.2", None, None, None] == [view.fault_of(run) for run in view.runs]
    assert [1] == [view.places[run.job] for run in view.faulty]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ((), None),
        (({"field": "training.environment.OTHER", "after": "x"},), None),
        (({"field": f"training.environment.{module.FAULT_VARIABLE}", "after": "f"},), "f"),
        (({"field": f"training.environment.{module.FAULT_VARIABLE}", "after": None},), ""),
    ],
)
def test_a_registration_says_which_fault_it_puts_in(changes, fault):
    change = RegistrationChange(revision=2, active=True, at=1, by="human:ada", changes=changes)

    assert fault == fault_in(change)


@pytest.mark.parametrize(
    ("scheduled", "ahead"),
    [("2030-01-01T02:00:00.000+00:00", True), ("2020-01-01T02:00:00+00:00", False), (None, False)],
)
def test_runs_before_their_time_are_ahead_of_it(scheduled, ahead):
    sound = production_run(1, "baseline")
    view = view_of([sound, production_run(2, "compile", details={"scheduled": scheduled})])

    assert ahead is view.ahead


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


def test_the_candidates_are_in_the_order_of_their_first_runs():
    view = view_of(runs("b", "baseline", "a", "b", "c"))

    assert ["b", "a", "c"] == list(view.candidates)


def test_up_to_the_bound_every_run_is_shown_and_beyond_it_the_latest(monkeypatch):
    monkeypatch.setattr(module, "MOST_SHOWN", 3)
    few, many = view_of(runs("a", "b", "c")), view_of(runs("a", "b", "c", "d", "e"))

    assert (0, ["a", "b", "c"]) == (few.left_out, [run.arm for run in few.runs[few.left_out :]])
    assert (2, ["c", "d", "e"]) == (many.left_out, [run.arm for run in many.runs[many.left_out :]])
    assert OFF == many.history.flag


def test_a_run_of_the_trial_without_a_time_is_left_out_of_the_stand_in():
    evidence = trial_evidence()
    full = [run for run in evidence["arms"][0]["runs"] if run["stage"] == "quality"]
    for run, wall in zip(full, (100.0, None, 400.0), strict=True):
        run["wall_seconds"] = wall
    view = view_of(runs("compile", "compile"), flag(1, 1, ON), evidence=evidence)

    assert 250.0 == view.standards[-1].wall_seconds


def test_of_one_moment_the_run_comes_first_then_its_alarm_then_the_flag():
    (run,) = runs("compile")
    at = int(run.ended_at)
    review = Review(at, run.run, "t1", reasons=(Reason("alarm", "compile: worse"),))
    view = view_of([run], {**flag(1, 0, ON), "at": at}, review.to_entry())

    assert ["run", "alarm", "flag"] == [event.kind for event in timeline(view).events]


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
