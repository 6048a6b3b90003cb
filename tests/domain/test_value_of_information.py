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
    CHANCE_QUALITY_HOLDS,
    FULL_RUNS_EXPECTED,
    RUNS_DURING_TRIAL,
    TYPICAL_WIN,
    InformationValue,
    value_of_a_trial,
    value_of_shadow_runs,
)
from compilegate.domain.judging.statistics import Design
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


def test_a_trial_pays_by_a_formula_that_can_be_worked_by_hand() -> None:
    value = value_of(100.0, full_run_steps=10_000)
    saved = (100 - RUNS_DURING_TRIAL) * (1 - 1 / TYPICAL_WIN) - FULL_RUNS_EXPECTED / TYPICAL_WIN

    assert pytest.approx(CHANCE_OF_A_WIN * saved) == value.gain
    assert pytest.approx(0.192) == value.cost
    assert value.pays


def test_further_runs_pay_by_a_formula_that_can_be_worked_by_hand() -> None:
    """At 1.25 times the speed and the price a fifth is saved: 2 runs of each arm, none yet."""
    evidence = read_evidence({**document(blocks=0), "runs_remaining": 20.0})
    design = Design(history=0, n_max=12, level=0.05)
    value = value_of_shadow_runs(evidence.candidates[0], evidence, design, 1.25)

    assert value is not None
    assert (pytest.approx(CHANCE_QUALITY_HOLDS * 18 * 0.2), 1.6, 2) == (
        value.gain,
        value.cost,
        value.runs,
    )


@given(remaining=st.floats(0, 1e6), more=st.floats(0, 1e6))
def test_more_runs_to_come_never_make_a_trial_worth_less(remaining: float, more: float) -> None:
    def gain(count: float) -> float:
        return value_of(count).gain

    assert 0 <= gain(remaining) <= gain(remaining + more)


@pytest.mark.parametrize(("remaining", "verdict"), [(5, "inconclusive"), (500, "continue")])
def test_a_trial_that_cannot_save_its_price_is_refused_before_spending(
    remaining: float, verdict: str
) -> None:
    decision = before_spending(remaining, full_run_steps=320)

    assert verdict == decision.verdict
    if verdict == "inconclusive":
        assert {"saving_below_trial_cost"} == codes(decision)
        assert FlagAction.KEEP == decision.flag_action
        assert decision.next is None


@pytest.mark.parametrize("remaining", [0, 1, 3.9])
def test_too_few_runs_left_to_prove_quality_on_are_refused(remaining: float) -> None:
    decision = before_spending(remaining)

    assert (Verdict.INCONCLUSIVE, {"saving_below_trial_cost"}) == (
        decision.verdict,
        codes(decision),
    )
    assert "too few" in words(decision)


def test_an_unknown_number_of_runs_left_refuses_nothing() -> None:
    assert Verdict.CONTINUE == before_spending(None, full_run_steps=320).verdict


def test_what_was_measured_already_is_judged_and_not_refused() -> None:
    doc = {**document(full_run_steps=320, compile_seconds=0), "runs_remaining": 6}

    assert "speedup_proven" in codes(judge(doc))


@pytest.mark.parametrize("mode", ["shadow", "hybrid"])
def test_an_unprovable_margin_is_refused_before_spending_and_the_provable_one_named(
    mode: str,
) -> None:
    refused = before_spending(history=(2.5, 0.1), margin=0.005, policy={"quality_runs": mode})

    assert (Verdict.INCONCLUSIVE, {"underpowered"}) == (refused.verdict, codes(refused))
    message = words(refused)
    provable = float(message.split("margin of ")[1].split(",")[0])
    assert "varies by 0.1 from run to run" in message
    assert 0.005 < provable
    accepted = before_spending(
        history=(2.5, 0.1), margin=1.01 * provable, policy={"quality_runs": mode}
    )
    assert Verdict.CONTINUE == accepted.verdict


def test_a_margin_that_history_shows_to_be_provable_is_not_refused() -> None:
    assert Verdict.CONTINUE == before_spending(history=(2.5, 0.004), margin=0.02).verdict


def test_a_history_that_never_varied_refuses_nothing() -> None:
    assert Verdict.CONTINUE == before_spending(history=(2.5, 0.0), margin=0.02).verdict


def test_extra_runs_that_would_cost_more_than_they_save_end_the_trial() -> None:
    doc = document(speedup=1.3, margin=0.02, metrics={"compile": sample(2, 2.5, 0.02)})
    doc["arms"][0]["runs"] += [
        {**run, "mode": "production"} for run in _baseline_runs(doc, sample(2, 2.501, 0.02))
    ]
    plenty, few = judge(doc), judge({**doc, "runs_remaining": 30})

    assert Verdict.CONTINUE == plenty.verdict
    assert Verdict.INCONCLUSIVE == few.verdict
    assert "saving_below_trial_cost" in codes(few)
    assert "would take about" in words(few)


def _baseline_runs(doc: dict[str, Any], metrics: list[float]) -> list[dict[str, Any]]:
    orders = [run["order"] for run in runs(doc)]
    return [
        {**run, "order": max(orders) + 1 + place, "metric": metric, "wall_seconds": 65.0}
        for place, (run, metric) in enumerate(zip(runs(doc), metrics, strict=True))
    ]


def test_runs_that_production_makes_anyway_are_not_weighed() -> None:
    doc = document(speedup=1.3, margin=0.02, metrics={"compile": sample(2, 2.5, 0.02)},
                   policy={"quality_runs": "canary"})  # fmt: skip
    doc["arms"][0]["runs"] += _baseline_runs(doc, sample(2, 2.501, 0.02))

    assert Verdict.CONTINUE == judge({**doc, "runs_remaining": 30}).verdict


def test_the_figures_that_these_tests_go_by() -> None:
    assert (0.4, 1.35, 2, 1.5, 0.8) == (
        CHANCE_OF_A_WIN,
        TYPICAL_WIN,
        RUNS_DURING_TRIAL,
        FULL_RUNS_EXPECTED,
        CHANCE_QUALITY_HOLDS,
    )
