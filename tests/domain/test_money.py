"""The figures of a decision: money by hand, intervals by scipy, unknown where unknown."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.codec import read, write
from compilegate.domain.decision import Decision
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.same_quality import same_quality_figures
from tests.domain.evidence_builder import (
    GOOD,
    document,
    judge,
    runs,
)

PRICE, JOB = 1.408, 65.0


def saving(doc: dict[str, Any]) -> dict[str, Any]:
    return write(judge(doc).saving)


def figures(decision: Decision, name: str = "compile") -> dict[str, Any]:
    return write(next(item for item in decision.arms if item.name == name))


SHORT = ("baseline", "compile")


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
