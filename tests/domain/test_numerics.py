"""The numerical kill test rejects or warns before full runs; it never promotes."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.numerics import read_numerics
from tests.domain.evidence_builder import GOOD, codes, document, judge, runs

FP32, BF16 = 1.2e-7, 7.8e-3


def check(compiled: list[Any], eager: list[Any], epsilon: Any = FP32) -> dict[str, Any]:
    errors = {"compiled": compiled, "eager": eager}
    return {"checked": True, "steps": 4, "epsilon": epsilon, "gradient_error": errors}


def decided(numerics: object, metrics: Any = None) -> Any:
    doc = document(metrics=metrics)
    for run in runs(doc, stage="speed"):
        run["numerics"] = numerics
    return judge(doc)


SOUND = check([2e-6] * 4, [1e-6] * 4)
WRONG = check([0.4] * 4, [1e-6] * 4)


@pytest.mark.parametrize(
    ("numerics", "code"),
    [
        (SOUND, None),
        # TF32 beside exact fp32: far less exact, and harmless.
        (check([1e-3] * 4, [1e-6] * 4), "numerics_differ"),
        (WRONG, "numerics_wrong"),
        # bf16 in both arms is as inexact as it is.
        (check([0.02] * 4, [0.015] * 4, BF16), None),
        (check([0.3] * 4, [0.2] * 4, BF16), None),
        # Eager that happens to be exact is no yardstick.
        (check([3e-7] * 4, [0.0] * 4), None),
        # One ill-conditioned batch decides nothing, what is wrong after the first step does.
        (check([0.9, 2e-6, 2e-6, 2e-6], [1e-6] * 4), None),
        (check([1e-6, 0.4, 0.5, 0.6], [1e-6] * 4), "numerics_wrong"),
        (check([None] * 4, [1e-6] * 4), "numerics_wrong"),
    ],
)
def test_what_the_check_says_of_a_candidate(numerics, code):
    decision = decided(numerics)

    assert {code} - {None} == codes(decision) & {"numerics_wrong", "numerics_differ"}
    assert (code == "numerics_wrong") is (Verdict.STAY_OFF == decision.verdict)


BROKEN = [
    None, "x", {}, {"checked": False, "reason": "x"}, check([0.4] * 4, [None] * 4),
    check([0.4] * 2, [1e-6] * 2), check([0.4] * 4, [1e-6] * 3), check([-1.0] * 4, [1e-6] * 4),
    check([True] * 4, [1e-6] * 4), check([0.4] * 4, [1e-6] * 4, None),
    check([0.4] * 4, [1e-6] * 4, 0), check([0.4] * 101, [1e-6] * 101), check(["a"] * 4, [1e-6] * 4),
    {**WRONG, "gradient_error": [1]}, check([10**400] * 4, [1e-6] * 4),
]  # fmt: skip


@pytest.mark.parametrize("numerics", BROKEN, ids=range(len(BROKEN)))
def test_a_check_that_was_not_made_or_is_broken_changes_nothing(numerics):
    assert read_numerics(numerics) is None
    assert judge(document()).reasons == decided(numerics).reasons


def test_a_sound_check_promotes_nothing():
    without, sound = judge(document(metrics=GOOD)), decided(SOUND, GOOD)

    assert (without.verdict, without.reasons) == (sound.verdict, sound.reasons)
    assert Verdict.CONTINUE == decided(SOUND).verdict


def test_full_runs_are_not_requested_of_a_candidate_with_another_gradient():
    assert decided(WRONG).next is None
    assert Verdict.STAY_OFF == decided(WRONG, GOOD).verdict
