"""What the history page is made from: places, states, standards, and what each figure is of."""

from dataclasses import replace

import pytest

from compilegate.domain.formats import money
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.monitor import quality_monitor
from compilegate.domain.production.registration import FAULT_VARIABLE
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import (
    RegistrationChange,
    Review,
)
from compilegate.domain.utc import iso
from compilegate.report.charts.figure import Points
from compilegate.report.charts.svg import draw
from compilegate.report.history.charts import charts
from compilegate.report.history.render import metric_cards
from compilegate.report.history.view import Difference, fault_in
from tests.domain.evidence_builder import probation_document, watch
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

    states = ["off", "probation", "probation", "reverted", "reverted"]
    assert states == [one.state for one in view.states]


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
    full = [run for run in evidence["arms"][0]["runs"] if run["stage"] == "quality"]
    for run, metric, wall in zip(full, (5.0, 6.0, 7.0), (50.0, 60.0, None), strict=True):
        run |= {"metric": metric, "wall_seconds": wall}
    evidence["quality"] |= {"history": [1.0, 3.0, 4.0], "history_wall_seconds": [20.0]}
    made = runs("compile", "compile")
    turned_on = {**flag(1, 1, ON), "at": int(BEGIN + 2 * DAY)}  # as the second starts

    def standards(*baseline):
        view = view_of([*made, *baseline], turned_on, evidence=evidence)
        return [(one.metric, one.wall_seconds) for one in view.standards]

    later, before, untimed = (
        production_run(number, "baseline", metric=metric, wall_seconds=wall)
        for number, metric, wall in ((3, None, 30.0), (0, None, 30.0), (0, 2.0, None))
    )
    assert [(None, None), (5.0, 130 / 3), (5.0, 40.0)] == standards(later)
    assert [(None, 30.0)] * 3 == standards(before)
    assert [(2.0, None)] * 3 == standards(untimed)


def test_a_fault_is_that_of_the_runs_spec_and_never_the_baselines():
    faulty = {"details": {"spec_key": "faulty"}}
    made = [production_run(1, "compile", **faulty), production_run(2, "baseline", **faulty)]
    view = view_of([*made, production_run(3, "compile")], faults={"faulty": "f"})

    assert [1] == [view.places[run.job] for run in view.faulty]


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


@pytest.mark.parametrize("evidence", [None, {"schema": 99}])
def test_without_evidence_that_can_be_read_there_are_no_sums(evidence):
    view = view_of(runs("compile"), evidence=evidence)

    assert (None, {}) == (view.probation, view.sums)


def probation(*runs):
    """Production's runs (arm, metric), a day each, with the evidence of a probation of them."""
    evidence, made = probation_document(sd=0.02), []
    for number, (arm, metric) in enumerate(runs, 1):
        made.append(production_run(number, arm, metric=metric, confirm=number == 3))
        watch(evidence, arm, metric=metric, job=made[-1].job, confirm=number == 3)
    return made, evidence


def test_the_sums_are_the_judges_after_each_run_that_the_page_has():
    """Before them the baseline's mean was 0.9; a fall of the margin, 0.02, is to be detected."""
    made, evidence = probation(
        ("baseline", 0.9),
        ("compile", 0.88),
        ("compile", 0.875),
        ("compile", 0.91),
        ("compile", 0.9),
    )
    view = view_of([*made[:3], *made[4:]], evidence=evidence)
    read = read_evidence(evidence)
    quality = view.sums["quality"]

    points = [(1, 0.0, "baseline", False), (2, 0.01, "compile", False), (3, 0.025, "compile", True),
              (4, 0.0, "compile", False)]  # fmt: skip
    assert points == [(place, pytest.approx(total, abs=1e-9), arm, confirm)
                      for place, total, arm, confirm in quality.points]  # fmt: skip
    assert ("quality", "eval_loss", 0.02) == (quality.key, quality.noun, quality.shift)
    assert quality_monitor(read, read.promoted_arm).limit == quality.limit
    assert [1, 2, 3, 4] == [place for place, *_ in view.sums["speed"].points]


WATCHED = (("baseline", 0.898), ("compile", 0.88), ("compile", 0.86), ("baseline", 0.899))
JUDGED = 0.87 - (3 * 0.9 + 0.898 + 0.899) / 5  # three of the five are the trial's
EVERY, SINCE = "every baseline run known, the trial's too", "the baseline runs since then"


@pytest.mark.parametrize(
    ("arms", "leave", "phase", "expected"),
    [
        (WATCHED, 4, "probation", Difference(JUDGED, EVERY)),
        (WATCHED, 4, "trial", Difference(0.87 - 0.8985, SINCE)),
        (WATCHED, 2, "probation", Difference(0.88 - 0.898, SINCE)),
        (WATCHED[:1], 1, "probation", None),
        (WATCHED[1:2], 1, "trial", None),
    ],
)  # fmt: skip
def test_the_difference_is_the_judges_where_it_has_seen_all_runs(arms, leave, phase, expected):
    made, evidence = probation(*arms)
    evidence |= {"phase": phase, "promoted": "compile" if phase == "probation" else None}
    if phase == "trial":
        for arm in evidence["arms"]:
            arm["runs"] = [run for run in arm["runs"] if run["stage"] != "probation"]
    lost = production_run(9, metric=9.0, counts=False)
    view = view_of([*made[:leave], lost], flag(1, 0, ON), evidence=evidence)

    difference = view.quality_difference
    assert expected == (difference and replace(difference, delta=pytest.approx(difference.delta)))


@pytest.mark.parametrize(
    ("at", "place"), [(DAY - 1, 0.5), (DAY, 1.5), (3 * DAY - 1, 2.5), (3 * DAY, 3.5)]
)
def test_a_moment_lies_after_the_runs_that_had_started(at, place):
    assert place == view_of(runs("baseline", "compile", "compile")).place_at(BEGIN + at)


def test_a_review_stands_after_the_last_job_of_its_run():
    first, second = runs("compile", "compile")
    view = view_of([first, second, replace(production_run(3), run=first.run)])
    places = [
        view.place_of(Review(BEGIN + 1, run, "t1")) for run in (first.run, second.run, "lost")
    ]

    assert [3.5, 2.5, 0.5] == places


def test_only_finished_runs_of_candidates_that_count_have_a_speed_up():
    made = [production_run(1, "compile"), production_run(2, "baseline", wall_seconds=300.0)]
    made += [
        production_run(3, wall_seconds=100.0), production_run(4, finished=False),
        production_run(5, counts=False), production_run(6, wall_seconds=None),
        production_run(7, "baseline", wall_seconds=100.0),
        production_run(8, "b", wall_seconds=50.0),
    ]  # fmt: skip
    view = view_of(made)

    assert ([(3, 3.0), (8, 4.0)], ["compile", "b"]) == (view.speedups, view.candidates)


@pytest.mark.parametrize(
    ("offsets", "ahead"),
    [((), False), ((0,), False), ((1,), True), ((1, -1), True), ((-1,), False)],
)
def test_the_clock_is_simulated_if_any_run_ended_before_it_was_due(offsets, ahead):
    ended = production_run(1).ended_at
    made = [
        replace(production_run(1), run=f"r{n}", job=f"j{n}", details={"scheduled": iso(ended + by)})
        for n, by in enumerate(offsets)
    ]

    assert ahead is view_of([*made, production_run(2)]).ahead


FAULT = f"training.environment.{FAULT_VARIABLE}"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ((), None), (({"field": "training.environment.OTHER", "after": "x"},), None),
        (({"field": "schedule"}, {"field": FAULT, "after": "lr"}), "lr"),
        (({"field": FAULT, "after": None},), ""),
    ],
)  # fmt: skip
def test_a_fault_is_what_a_registration_puts_in(changes, fault):
    assert fault == fault_in(RegistrationChange(1, True, changes=changes))


@pytest.mark.parametrize(
    ("faults", "state", "codes", "words"),
    [
        ({}, REVERTED, ["alarm_cleared"], ""), ({}, ON, ["quality_regressed"], ""),
        ({}, REVERTED, ["speedup_gone", "quality_regressed"],
         "without what the quality that was lost costs"),
        ({"s": "f"}, ON, [], "2 of them with the fault"),
        ({"s": "f"}, REVERTED, ["candidate_crashed"],
         "2 of them with the fault, without what the quality that was lost costs"),
    ],
)  # fmt: skip
def test_what_speaks_against_the_saving_is_said(faults, state, codes, words):
    earlier = reviewed(1, "continue", reasons=(Reason("quality_regressed", ""),))
    last = reviewed(2, "continue", reasons=tuple(Reason(code, "") for code in codes))
    made = runs("compile", "compile", "baseline", details={"spec_key": "s"})
    changes = [flag(1, 0, ON), flag(2, 3, state, by="train", action="revert")]

    assert words == view_of(made, *changes, earlier, last, faults=faults).unsound


def reviewed(number, verdict, **more):
    return Review(
        int(BEGIN + number * DAY), f"r{number}", "t1", "compile", verdict=verdict, **more
    ).to_entry()


def test_what_was_saved_is_shown_with_its_interval():
    made = [replace(run, usd=10.0 + place % 5) for place, run in enumerate(
        runs(*["baseline", "compile"] * 6))]  # fmt: skip
    view = view_of(made, flag(1, 0, ON))
    (card,) = [card for card in metric_cards(view) if card.name == "Saved so far"]

    low, high = view.savings.interval_usd
    assert low < (view.savings.saved_usd or 0) < high
    assert f"{money(low)} to {money(high)} with 90 % confidence" in card.note


def test_a_text_that_a_team_wrote_is_no_markup_in_a_chart():
    view = view_of([production_run(1, "<b>arm</b>", metric=1.0)])
    (quality, *_) = charts(view, [])

    figure = quality.views[0].figure
    assert "<b>arm</b>" in {mark.name for mark in figure.marks if isinstance(mark, Points)}
    assert "<b>" not in draw(figure, "")
