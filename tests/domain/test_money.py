"""The figures of a decision: money by hand, intervals by scipy, unknown where unknown."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from compilegate.domain.codec import read, write
from compilegate.domain.decision import Decision, QualityRuns
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.same_quality import same_quality_figures
from tests.domain.evidence_builder import (
    CENTRE,
    GOOD,
    PROBATION_MARGIN,
    arm,
    document,
    judge,
    probation_document,
    runs,
    sample,
    watch,
)

PRICE, JOB = 1.408, 65.0
BASE_USD = JOB / 3600 * PRICE


def saving(doc: dict[str, Any]) -> dict[str, Any]:
    return write(judge(doc).saving)


def speedup(doc: dict[str, Any]) -> dict[str, Any]:
    return write(judge(doc).speedup)


def figures(decision: Decision, name: str = "compile") -> dict[str, Any]:
    return write(next(item for item in decision.arms if item.name == name))


@pytest.mark.parametrize("price_ratio", [1.0, 1.1, 0.7])
def test_a_saving_and_its_interval_are_those_of_the_speed_up(price_ratio):
    doc = document(metrics=GOOD)
    arm(doc)["usd_per_hour"] = price_ratio * PRICE
    money, speed = saving(doc), speedup(doc)
    saved, low, high = (
        BASE_USD * (1 - price_ratio / ratio) for ratio in (speed["estimate"], *speed["interval"])
    )

    assert pytest.approx(BASE_USD) == money["usd_per_run_baseline"]
    assert pytest.approx((saved, low, high)) == (
        money["usd_per_run"], *money["interval_usd_per_run"],
    )  # fmt: skip
    assert pytest.approx([x * 2800 * 52 for x in (saved, low, high)]) == [
        money["usd_per_year"], *money["interval_usd_per_year"],
    ]  # fmt: skip


def production_makes_them(doc: dict[str, Any]) -> None:
    for name, mode in (("baseline", "production"), ("compile", "canary")):
        for run in runs(doc, name):
            run["mode"] = mode


def one_crashed(doc: dict[str, Any]) -> None:
    runs(doc, "baseline")[1].update(finished=False, metric=None, wall_seconds=None)


def one_untimed(doc: dict[str, Any]) -> None:
    runs(doc)[0]["wall_seconds"] = None


SHORT = ("baseline", "compile")
COSTS: dict[str, tuple[Any, Any]] = {
    "segments and extra runs": (lambda doc: None, lambda blocks, walls: blocks + sum(walls)),
    "runs that production made": (production_makes_them, lambda blocks, walls: blocks),
    "a crash of unknown length": (one_crashed, lambda blocks, walls: blocks + sum(walls) - JOB),
    "a run of unknown length": (one_untimed, lambda blocks, walls: None),
    "the bill": (lambda doc: doc.update(plan={"spent_usd": 12.5}),
                 lambda blocks, walls: 12.5 * 3600 / PRICE),
}  # fmt: skip


@pytest.mark.parametrize("what", COSTS)
def test_a_trial_costs_its_segments_and_its_extra_runs_unless_the_bill_knows(what):
    change, expected = COSTS[what]
    doc = document(metrics=GOOD)
    blocks = [sum(run["step_seconds"]) for name in SHORT for run in runs(doc, name, "speed")]
    seconds = expected(
        sum(blocks), [run["wall_seconds"] for name in SHORT for run in runs(doc, name)]
    )
    change(doc)
    money = saving(doc)

    assert (seconds is None) == (money["trial_usd"] is None) == (money["payback_runs"] is None)
    if seconds is not None:
        assert pytest.approx(seconds / 3600 * PRICE) == money["trial_usd"]
        assert pytest.approx(money["trial_usd"] / money["usd_per_run"]) == money["payback_runs"]


@pytest.mark.parametrize("key", ["usd_per_hour", "runs_per_week"])
def test_without_a_price_or_a_schedule_there_is_no_saving(key):
    assert judge({**document(metrics=GOOD), key: None}).saving is None


@pytest.mark.parametrize(
    ("walls", "seconds", "tolerance"),
    [([], 60, 0.1), ([100.0, 140.0], 120, 1e-9)],  # by the blocks; by past runs
)
def test_before_any_full_run_the_baseline_has_a_price(walls, seconds, tolerance):
    doc = document()
    doc["quality"]["history_wall_seconds"] = walls
    price = figures(judge(doc), "baseline")["usd_per_run"]

    assert pytest.approx(seconds / 3600 * PRICE, rel=tolerance) == price


def test_hours_far_from_those_measured_have_an_answer_of_their_own():
    """The trial's job takes a minute, 3 s of them compilation; its production an hour."""
    measured = judge(document()).scheduled
    decision = judge({**document(), "run_hours": 1.0})
    hour = decision.scheduled
    alike = judge({**document(), "run_hours": 1.5 / 60}).scheduled

    assert measured is None
    assert alike is None
    assert 3600 == hour.seconds
    assert pytest.approx(3600 / (3 + 3600 / 1.4), rel=0.01) == hour.speedup
    assert hour.interval[0] < hour.speedup < hour.interval[1]
    assert pytest.approx(10.5, rel=0.1) == hour.pays_from_seconds
    assert decision == read(Decision, write(decision))


def test_break_even_is_the_overhead_over_the_share_saved():
    """3 s of compilation at 1.4x: 3 x 1.4 / 0.4 = 10.5 s."""
    assert pytest.approx(10.5 / 60, rel=0.1) == saving(document())["break_even_run_minutes"]
    assert saving(document(speedup=0.9))["break_even_run_minutes"] is None


def with_curves(doc: dict[str, Any], *, faster: float, floor: float = 2.0) -> dict[str, Any]:
    """Loss curves of 100 points; the candidate's falls ``faster`` times as fast."""
    for name, pace in (("baseline", 1.0), ("compile", faster)):
        low = 2.0 if name == "baseline" else floor
        for run in runs(doc, name):
            run["loss_curve"] = [[n, low + math.exp(-n * pace / 300)] for n in range(20, 2001, 20)]
    return doc


@pytest.mark.parametrize(
    ("faster", "floor", "loss_of", "steps"),
    [
        (2.0, 2.0, "baseline", (2000, 1050)),
        (0.5, 2.0, "baseline", (2000, None)),  # never gets there, by more than chance
        (1.0, 2.5, "baseline", (2000, None)),
    ],
)
def test_dollars_to_the_same_loss_follow_the_steps_to_it(faster, floor, loss_of, steps):
    doc = with_curves(document(metrics=GOOD), faster=faster, floor=floor)
    same = saving(doc)["same_quality"]

    assert loss_of == same["loss_of"]
    for side, name, expected in zip(("baseline", "candidate"), SHORT, steps, strict=True):
        reached, usd = same[f"steps_{side}"], same[f"usd_{side}"]
        price = figures(judge(document(metrics=GOOD)), name)["usd_per_run"]
        assert reached == (None if expected is None else pytest.approx(expected, abs=60))
        assert usd == (None if expected is None else pytest.approx(price * reached / 2000))


def ending_at(ends: dict[str, list[float]], *, step: float = 10) -> Evidence:
    """Runs of ten points that fall from 5 to 1.2 at the fourth; each other one of 14, later."""
    doc = document(metrics={name: [2.5] * len(own) for name, own in ends.items()})
    for name, own in ends.items():
        for number, (run, end) in enumerate(zip(runs(doc, name), own, strict=True)):
            falls = [*[5.0] * (8 if number % 2 else 3), *[1.2] * (5 if number % 2 else 6), end]
            run["loss_curve"] = [[step * (n + 1), loss] for n, loss in enumerate(falls)]
    return read_evidence(doc)


# Medians 1.1 and 1.1 + m, spread sqrt(0.04 / 3) of 3 degrees of freedom: 3 errors are 0.316.
@pytest.mark.parametrize(
    ("higher", "of", "steps"),
    [
        (0.31, "candidate", (85, 40)),
        (0.32, "baseline", (120, None)),
        (0.0, "baseline", (120, 100)),
        (-0.1, "baseline", (120, 100)),
    ],
)
def test_an_arm_that_ends_three_standard_errors_higher_never_gets_there(higher, of, steps):
    mine = [1.1 + higher + off for off in (-0.1, 0.0, 0.1)]
    evidence = ending_at({"baseline": [1.0, 1.2], "compile": mine})
    found = same_quality_figures(evidence.candidates[0], evidence)

    assert (of, steps) == (found.loss_of, (found.steps_baseline, found.steps_candidate))
    assert (steps[1] is None) is (found.usd_candidate is None)


@pytest.mark.parametrize(("higher", "of"), [(15.0, "candidate"), (15.1, "baseline")])
def test_three_standard_errors_higher_are_within_chance(higher, of):
    """Ends 6 and 8 apart: the pooled spread is 5, as is the error of two runs' means."""
    ends = {"baseline": [1.0, 7.0], "compile": [higher, 8.0 + higher]}
    evidence, single = ending_at(ends), ending_at({"baseline": [1.0], "compile": [1.1]})

    assert of == same_quality_figures(evidence.candidates[0], evidence).loss_of
    assert "candidate" == same_quality_figures(single.candidates[0], single).loss_of


def test_a_loss_is_that_of_the_last_tenth_of_its_curve():
    doc = document(metrics={"baseline": [2.5], "compile": [2.5]})
    for run in (*runs(doc, "baseline"), *runs(doc)):
        run["loss_curve"] = [[n, 21.0 - n, None] for n in range(1, 21)]
    evidence = read_evidence(doc)
    found = same_quality_figures(evidence.candidates[0], evidence)

    assert (1.5, 20, 20) == (found.loss, found.steps_baseline, found.steps_candidate)


def test_steps_without_a_length_or_a_price_cost_nothing_known():
    ends = {"baseline": [1.0, 1.0], "compile": [1.0, 1.0]}
    still, sound = ending_at(ends, step=0), ending_at(ends)
    short = ending_at(ends, step=0.05)
    priced = same_quality_figures(short.candidates[0], short)
    unpriced = replace(sound, arms=tuple(replace(arm, usd_per_hour=None) for arm in sound.arms))
    for evidence in (still, unpriced):
        found = same_quality_figures(evidence.candidates[0], evidence)

        assert (None, None) == (found.usd_baseline, found.usd_candidate)
        assert found.steps_candidate is not None
    assert None not in (priced.usd_baseline, priced.usd_candidate)


@pytest.mark.parametrize(
    "curve",
    [None, "no", [[1, 2.0]] * 9, [["a", 1]] * 20, [[1]] * 20, [1] * 20, [[1, math.inf]] * 20],
)
def test_without_usable_curves_the_same_quality_has_no_price(curve):
    for name in ("baseline", "compile"):
        doc = with_curves(document(metrics=GOOD), faster=1.0)
        for run in runs(doc, name):
            run["loss_curve"] = curve

        assert saving(doc)["same_quality"] is None


def test_throughput_carries_students_interval():
    doc = document(blocks=4)
    steady = read_evidence(doc).segments["compile"].values()
    rates = [32 / segment.steady_step_seconds for segment in steady if segment]
    mean = sum(rates) / 4
    figure = figures(judge(doc))

    assert pytest.approx(mean) == figure["samples_per_second"]
    assert pytest.approx(stats.t.interval(0.95, 3, loc=mean, scale=stats.sem(rates))) == (
        tuple(figure["samples_per_second_interval"])
    )


def test_production_quality_is_compared_with_every_baseline_run_known():
    doc = probation_document()
    for value in sample(6, CENTRE - PROBATION_MARGIN / 4, 0.002):
        watch(doc, metric=value)
    quality = judge(doc).quality

    assert pytest.approx(-PROBATION_MARGIN / 4, abs=1e-3) == quality.estimate
    assert quality.interval and quality.interval[0] < quality.estimate < quality.interval[1]
    assert QualityRuns(baseline=3, candidate=6, history=20) == quality.runs
