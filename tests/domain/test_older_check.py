"""The older rule of the equivalence check, which needs no table of faults and never promotes."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.checks import read_older
from compilegate.domain.judging.equivalence import medians_of
from tests.domain.evidence_builder import codes, document, judge, runs
from tests.domain.test_equivalence import TABLE, examined, figures, part

FP32, BF16 = 1.2e-7, 7.8e-3


def check(compiled: list[Any], eager: list[Any], epsilon: Any = FP32) -> dict[str, Any]:
    errors = {"compiled": compiled, "eager": eager}
    return {"checked": True, "steps": 4, "epsilon": epsilon, "gradient_error": errors}


def decided(numerics: object, metrics: Any = None, key: str = "numerics") -> Any:
    doc = document(metrics=metrics)
    for run in runs(doc, stage="speed"):
        run[key] = numerics
    return judge(doc)


def as_total(numerics: dict[str, Any]) -> dict[str, Any]:
    """The same errors as a check of today records them."""
    total = {**numerics["gradient_error"], "epsilon": numerics["epsilon"]}
    other = {"compiled": [1e-6] * 4, "eager": [1e-6] * 4, "epsilon": FP32}
    own, single = part("gradients", total=total), part("gradients", 1.0, "single", total=other)
    return figures(parts=[part("buffers"), own, single])


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
        # At the limits: a ratio of ten, a quarter of the length, fp8, three steps, a hundred.
        (check([0.15625] * 4, [0.015625] * 4), "numerics_differ"),
        (check([0.25] * 4, [0.015625] * 4), "numerics_wrong"),
        (check([2.5] * 4, [0.01] * 4, 0.25), "numerics_wrong"),
        (check([0.4] * 4, [0.0] * 4), "numerics_wrong"),
        (check([0.4] * 3, [1e-6] * 3), "numerics_wrong"),
        (check([0.4] * 100, [1e-6] * 100), "numerics_wrong"),
    ],
)
def test_what_the_check_says_of_a_candidate(numerics, code):
    for decision in (decided(numerics), decided(as_total(numerics), key="equivalence")):
        assert {code} - {None} == codes(decision) & {"numerics_wrong", "numerics_differ"}
        assert (code == "numerics_wrong") is (Verdict.STAY_OFF == decision.verdict)
        assert (code == "numerics_wrong") is (decision.next is None)


BROKEN = [
    None, "x", {}, {"checked": False, "reason": "x"}, check([0.4] * 4, [None] * 4),
    check([0.4] * 2, [1e-6] * 2), check([0.4] * 4, [1e-6] * 3), check([-1.0] * 4, [1e-6] * 4),
    check([True] * 4, [1e-6] * 4), check([0.4] * 4, [1e-6] * 4, None),
    check([0.4] * 4, [1e-6] * 4, 0), check([4.0] * 4, [1e-6] * 4, 0.26),
    check([0.4] * 101, [1e-6] * 101), check(["a"] * 4, [1e-6] * 4),
    {**WRONG, "gradient_error": [1]}, {**WRONG, "checked": False},
    check([0.4] * 4, [None, 1e-6, 1e-6, 1e-6]), check([10**400] * 4, [1e-6] * 4),
]  # fmt: skip


@pytest.mark.parametrize("numerics", BROKEN, ids=range(len(BROKEN)))
def test_a_check_that_was_not_made_or_is_broken_changes_nothing(numerics):
    total = read_older(numerics)
    assert total is None or medians_of(total) is None
    assert judge(document()).reasons == decided(numerics).reasons


NOT_FINITE = check([None] * 4, [1e-6] * 4)
# Wrong at a ratio of 15, and far less exact at one of a thousand.
INEXACT = check([0.3] * 4, [0.02] * 4), check([1e-3] * 4, [1e-6] * 4)


@pytest.mark.parametrize("table", [None, TABLE | {"check": "f"}, TABLE])
@pytest.mark.parametrize("pair", [(SOUND, NOT_FINITE), (NOT_FINITE, SOUND), INEXACT, INEXACT[::-1]])
def test_the_worst_of_all_checks_decides_whatever_the_table_says(pair, table):
    first, last = map(as_total, pair)
    decision = judge(examined(first, {**last, "weights": "last"}, table=table))

    assert (Verdict.STAY_OFF, "numerics_wrong") == (decision.verdict, decision.codes[0])
