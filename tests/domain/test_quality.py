"""The quality gate: a loss of the margin is ruled out, proven, or unprovable."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.decision import FlagAction, Verdict
from compilegate.domain.judging.quality import (
    BEYOND_DOUBT,
    FUTILE,
    QualityFinding,
    QualityOutcome,
    chance_of_passing,
    judge_quality,
    underpowered,
)
from compilegate.domain.judging.statistics import FAIR, Design, Samples, spent
from tests.domain.evidence_builder import (
    GOOD,
    NOISY,
    codes,
    document,
    judge,
    runs,
    sample,
    step_of,
)

DESIGN = Design(history=0, n_max=12, level=0.05)
MARGIN = 0.02


def gate(
    candidate: list[float],
    baseline: list[float],
    history: tuple[float, ...] = (),
    margin: float = MARGIN,
) -> QualityFinding:
    design = Design(history=len(history), n_max=12, level=0.05)
    return judge_quality(Samples(candidate, baseline, history), margin, design)


def test_the_gate_passes_exactly_where_the_looks_level_is_reached() -> None:
    """The one-sided t test at the spent level, by scipy, on either side of the bar."""
    candidate, baseline, level = sample(5, 0.0, 0.1), sample(5, 0.0, 0.1), spent(5, 12, 0.05)
    bar = stats.t.isf(level, 8) * 0.1 * math.sqrt(2 / 5)

    assert QualityOutcome.HELD == gate(candidate, baseline, margin=bar * 1.001).outcome
    assert QualityOutcome.MORE_RUNS == gate(candidate, baseline, margin=bar * 0.999).outcome


def test_the_interval_holds_at_the_looks_own_level() -> None:
    finding = gate(GOOD["compile"], GOOD["baseline"])
    expected = stats.ttest_ind(GOOD["compile"], GOOD["baseline"]).confidence_interval(
        1 - 2 * spent(3, 12, 0.05)
    )

    assert pytest.approx((expected.low, expected.high), rel=1e-9) == finding.interval


@pytest.mark.parametrize(("n", "look"), [(2, 2), (3, 3), (4, 3), (7, 5), (11, 8), (20, 12)])
def test_only_looks_are_looked_at(n: int, look: int) -> None:
    """Runs past a look wait for the next, however well they would do."""
    steady = gate([*sample(look, 0.0, 0.001), *[9.0] * (n - look)], sample(n, 0.0, 0.001))

    assert (look, QualityOutcome.HELD) == (steady.look, steady.outcome)


@given(share=st.floats(0, 0.49), spread=st.floats(1e-4, 2), n=st.sampled_from([2, 3, 5, 8, 12]))
def test_a_loss_within_half_the_margin_is_never_proof_of_worse_quality(
    share: float, spread: float, n: int
) -> None:
    ours, theirs = sample(n, -share * MARGIN, spread * MARGIN), sample(n, 0.0, spread * MARGIN)

    assert QualityOutcome.WORSE != gate(ours, theirs).outcome


def test_a_proven_loss_below_the_margin_is_worse_before_it_is_held() -> None:
    assert (
        QualityOutcome.WORSE
        == gate(sample(5, -0.8 * MARGIN, 0.3 * MARGIN), sample(5, 0.0, 0.3 * MARGIN)).outcome
    )


@pytest.mark.parametrize(
    ("loss", "outcome"),
    [(0.0, "held"), (0.9, "held"), (1.1, "worse"), (2.0, "worse"), (-3.0, "held")],
)
def test_a_calm_metric_is_decided_by_the_margin_alone(loss: float, outcome: str) -> None:
    assert outcome == gate(sample(5, -loss * MARGIN, 1e-5), sample(5, 0.0, 1e-5)).outcome


def test_one_run_each_beside_a_long_history_can_prove_a_large_loss_and_nothing_else() -> None:
    history = tuple(sample(8, 0.0, 0.004))

    assert QualityOutcome.WORSE == gate([-0.2], [0.0], history).outcome
    assert QualityOutcome.MORE_RUNS == gate([-0.004], [0.0], history).outcome
    assert QualityOutcome.MORE_RUNS == gate([+0.2], [0.0], history).outcome


def test_without_a_baseline_run_of_the_same_weeks_nothing_is_proven() -> None:
    history = tuple(sample(8, 0.0, 0.004))

    assert QualityOutcome.MORE_RUNS == gate([-0.2], [], history).outcome


def test_a_disaster_between_looks_ends_the_trial() -> None:
    losing = [*sample(3, -0.02, 0.005), -0.02, -0.02, -0.02, -0.02]
    finding = gate(losing[:4], sample(4, 0.0, 0.005))

    assert finding.comparison is not None
    assert finding.comparison.p_worse <= BEYOND_DOUBT
    assert QualityOutcome.WORSE == finding.outcome


def test_a_trial_that_would_hardly_prove_the_margin_any_more_is_given_up() -> None:
    hopeless = gate(sample(8, -MARGIN, 1.2 * MARGIN), sample(8, 0.0, 1.2 * MARGIN))
    hopeful = gate(sample(5, 0.0, MARGIN), sample(5, 0.0, MARGIN))

    assert QualityOutcome.INCONCLUSIVE == hopeless.outcome
    assert QualityOutcome.MORE_RUNS == hopeful.outcome
    for finding, futile in ((hopeless, True), (hopeful, False)):
        assert finding.comparison is not None
        assert futile == (chance_of_passing(finding.comparison, MARGIN, DESIGN) < FUTILE)


def test_the_last_look_without_a_proof_is_inconclusive() -> None:
    finding = gate(sample(12, -0.5 * MARGIN, MARGIN / 2), sample(12, 0.0, MARGIN))

    assert QualityOutcome.INCONCLUSIVE == finding.outcome
    assert "prove a margin of" in finding.reason


def test_a_metric_that_varies_too_much_is_inconclusive_and_names_the_provable_margin() -> None:
    decision = judge(document(metrics=NOISY, goal="maximize", margin=0.005))

    assert (Verdict.INCONCLUSIVE, FlagAction.KEEP) == (decision.verdict, decision.flag_action)
    assert "quality_inconclusive" in codes(decision)
    assert decision.quality is not None
    assert decision.quality.provable_margin > 0.05
    assert decision.quality.runs_needed is None


def test_history_alone_refuses_what_no_number_of_runs_would_prove() -> None:
    history = sample(8, 0.9, 0.1)
    finding = underpowered(Samples((), (), history), 0.005, Design(8, 12, 0.05))
    assert finding is not None
    margin = finding.provable_margin

    assert QualityOutcome.UNDERPOWERED == finding.outcome
    assert margin is not None
    assert f"{margin:.4g}" in finding.reason
    assert underpowered(Samples((), (), history), margin, Design(8, 12, 0.05)) is None


def test_a_short_history_refuses_nothing() -> None:
    wild = Samples((), (), sample(4, 0.9, 0.1))

    assert underpowered(wild, 1e-6, Design(4, 12, 0.05)) is None


def test_runs_that_production_makes_anyway_are_refused_later() -> None:
    history = sample(8, 0.9, 0.1)
    margin = 0.1 * Design(8, 12, 0.05).best_margin(0.4)
    even, fair = Design(8, 12, 0.05), Design(8, 12, 0.05, least_chance=FAIR)

    assert underpowered(Samples((), (), history), 0.8 * margin, even) is not None
    assert underpowered(Samples((), (), history), 0.8 * margin, fair) is None


def test_too_few_degrees_of_freedom_ask_for_more_runs() -> None:
    assert QualityOutcome.MORE_RUNS == gate([0.0, 0.001], [0.0]).outcome
    assert QualityOutcome.MORE_RUNS == gate([0.0, 0.001], []).outcome


@pytest.mark.parametrize("drift", [-0.4, -0.05, -0.02, -0.01, 0.0])
@pytest.mark.parametrize("length", [5, 12, 30])
def test_history_that_was_worse_than_today_cannot_hide_a_loss(drift: float, length: int) -> None:
    """The candidate loses 1.5 margins to the baseline of today, whatever the past was like."""
    history = tuple(sample(length, drift, 0.005))
    finding = gate(sample(5, -1.5 * MARGIN, 0.005), sample(5, 0.0, 0.005), history)

    assert QualityOutcome.HELD != finding.outcome


@pytest.mark.parametrize("drift", [0.4, 0.1, 0.05])
def test_history_that_was_better_than_today_does_not_make_a_good_candidate_lose(
    drift: float,
) -> None:
    history = tuple(sample(12, drift, 0.005))

    assert (
        QualityOutcome.HELD == gate(sample(5, 0.0, 0.005), sample(5, 0.0, 0.005), history).outcome
    )


@given(margins=st.floats(1.0, 5.0), spread=st.floats(0.01, 0.2), n=st.sampled_from([2, 3, 5, 12]))
def test_samples_that_show_exactly_a_loss_of_the_margin_never_pass(
    margins: float, spread: float, n: int
) -> None:
    finding = gate(sample(n, -margins * MARGIN, spread * MARGIN), sample(n, 0.0, spread * MARGIN))

    assert QualityOutcome.HELD != finding.outcome


def test_a_candidate_less_stable_than_the_baseline_needs_more_proof() -> None:
    calm = gate(sample(3, 0.0, 0.001), sample(3, 0.0, 0.001), margin=0.01)
    wild = gate(sample(3, 0.0, 0.01), sample(3, 0.0, 0.001), margin=0.01)

    assert [QualityOutcome.HELD, QualityOutcome.MORE_RUNS] == [calm.outcome, wild.outcome]


def test_a_baseline_whose_full_runs_mostly_fail_proves_nothing() -> None:
    doc = document(metrics=GOOD)
    for run in runs(doc, "baseline")[-2:]:
        run.update(finished=False, metric=None)

    assert Verdict.INCONCLUSIVE == judge(doc).verdict


def test_a_first_baseline_run_that_failed_is_made_again() -> None:
    doc = document(metrics={"baseline": GOOD["baseline"][:1], "compile": GOOD["compile"][:2]})
    runs(doc, "baseline")[0].update(finished=False, metric=None)
    decision = judge(doc)

    assert Verdict.CONTINUE == decision.verdict
    assert decision.next is not None
    assert "baseline" in [run["arm"] for run in (step_of(decision) or {})["runs"]]


def test_the_figures_that_these_tests_go_by() -> None:
    assert (0.002, 0.15) == (BEYOND_DOUBT, FUTILE)
