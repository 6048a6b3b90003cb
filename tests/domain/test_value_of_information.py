"""A trial that cannot pay, or cannot prove, is refused before it spends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.decision import Decision, FlagAction, Verdict
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.next_step import (
    CHANCE_OF_A_WIN,
    FULL_RUNS_EXPECTED,
    RUNS_DURING_TRIAL,
    TYPICAL_WIN,
    InformationValue,
    value_of_a_trial,
)
from tests.domain.evidence_builder import codes, document, judge, runs, sample, words


def before_spending(
    remaining: float | None = None, *, history: tuple[float, float] | None = None, **keys: Any
) -> Decision:
    """Nothing measured yet; ``history`` is the mean and spread of eight past runs."""
    doc = {**document(blocks=0, **keys), "runs_remaining": remaining}
    if history:
        doc["quality"]["history"] = sample(8, *history)
    return judge(doc)


def value_of(remaining: float, **keys: Any) -> InformationValue:
    value = value_of_a_trial(
        read_evidence({**document(blocks=0, **keys), "runs_remaining": remaining})
    )
    assert value is not None
    return value


def test_a_trial_pays_by_a_formula_that_can_be_worked_by_hand():
    value = value_of(100.0, full_run_steps=10_000)
    saved = (100 - RUNS_DURING_TRIAL) * (1 - 1 / TYPICAL_WIN) - FULL_RUNS_EXPECTED / TYPICAL_WIN

    assert pytest.approx(CHANCE_OF_A_WIN * saved) == value.gain
    assert pytest.approx(0.192) == value.cost
    assert value.pays
    # Too few runs to come bring nothing, and of an unknown length nothing is said.
    assert 0.0 == value_of(3.0).gain
    unknown = {**document(blocks=0), "runs_remaining": 9.0, "full_run_steps": None}
    assert None is value_of_a_trial(read_evidence(unknown))


@given(remaining=st.floats(0, 1e6), more=st.floats(0, 1e6))
def test_more_runs_to_come_never_make_a_trial_worth_less(remaining, more):
    def gain(count: float) -> float:
        return value_of(count).gain

    assert 0 <= gain(remaining) <= gain(remaining + more)


@pytest.mark.parametrize(
    ("remaining", "keys", "pays"),
    [
        (5, {"full_run_steps": 320}, False),
        (500, {"full_run_steps": 320}, True),
        (None, {"full_run_steps": 320}, True),
        (0, {}, False),
        (3.9, {}, False),
    ],
    ids=["few runs to come", "many", "an unknown number", "none to prove quality on", "too few"],
)
def test_a_trial_that_cannot_pay_is_refused_before_spending(remaining, keys, pays):
    decision = before_spending(remaining, **keys)

    assert {"speed_needs_blocks" if pays else "saving_below_trial_cost"} == codes(decision)
    assert (Verdict.CONTINUE if pays else Verdict.INCONCLUSIVE) == decision.verdict
    assert FlagAction.KEEP == decision.flag_action
    assert pays == (decision.next is not None)
    assert ("too few" in words(decision)) == (not keys)


@pytest.mark.parametrize(
    ("mode", "remaining", "verdict"),
    [
        ("shadow", 145_600, Verdict.CONTINUE),
        ("shadow", 30, Verdict.INCONCLUSIVE),
        ("shadow", None, Verdict.CONTINUE),
        ("canary", 30, Verdict.CONTINUE),  # made anyway
    ],
)
def test_only_extra_runs_have_to_be_worth_their_price(mode, remaining, verdict):
    doc = document(speedup=1.3, margin=0.02, metrics={"compile": sample(2, 2.5, 0.02)},
                   policy={"quality_runs": mode})  # fmt: skip
    made = "production" if mode == "shadow" else "shadow"
    doc["arms"][0]["runs"] += [
        {**run, "mode": made, "order": 10 + place, "metric": metric, "wall_seconds": 65.0}
        for place, (run, metric) in enumerate(zip(runs(doc), sample(2, 2.501, 0.02), strict=True))
    ]
    decision = judge({**doc, "runs_remaining": remaining})

    assert verdict == decision.verdict
    assert ("saving_below_trial_cost" in codes(decision)) == (verdict is Verdict.INCONCLUSIVE)
