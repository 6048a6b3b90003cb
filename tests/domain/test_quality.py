"""The quality gate: a loss of the margin is ruled out, proven, or unprovable."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import FAIR, Design, spent
from compilegate.domain.judging.quality import (
    QualityFinding,
    QualityOutcome,
    judge_quality,
    underpowered,
)
from tests.domain.evidence_builder import GOOD, document, judge, runs, sample, step_of

MARGIN = 0.02


def gate(
    candidate: list[float],
    baseline: list[float],
    history: tuple[float, ...] = (),
    margin: float = MARGIN,
) -> QualityFinding:
    design = Design(history=len(history), n_max=12, error=0.05)
    return judge_quality(Samples(candidate, baseline, history), margin, design)


def pair(n: int, loss: float, ours: float, theirs: float | None = None) -> tuple[Any, Any]:
    """As many runs of each arm: the loss and the spreads in margins."""
    spread = ours if theirs is None else theirs
    return sample(n, -loss * MARGIN, ours * MARGIN), sample(n, 0.0, spread * MARGIN)


# The one-sided t test at the level of the look at 5, by scipy: the spread that it just bears.
BEARS = 1 / (stats.t.isf(spent(5, 12, 0.05), 8) * math.sqrt(2 / 5))
PAST = tuple(sample(8, 0.0, 0.2 * MARGIN))
HELD, WORSE, MORE = QualityOutcome.HELD, QualityOutcome.WORSE, QualityOutcome.MORE_RUNS
GATES: dict[str, tuple[tuple[Any, ...], QualityOutcome]] = {
    "a spread that the look just bears": (pair(5, 0, 0.999 * BEARS), HELD),
    "a little more": (pair(5, 0, 1.001 * BEARS), MORE),
    "a proven loss below the margin, before it is held": (pair(5, 0.8, 0.3), WORSE),
    "a loss that would be proven at the level of a promotion": (pair(5, 0.8, 0.45), MORE),
    **{
        f"a calm metric {loss} margins off": (pair(5, loss, 0.0005), outcome)
        for loss, outcome in ((0, HELD), (0.9, HELD), (1.1, WORSE), (2, WORSE), (-3, HELD))
    },
    "one run each beside a long history, a large loss": (([-0.2], [0.0], PAST), WORSE),
    "a small one": (([-0.004], [0.0], PAST), MORE),
    "a gain": (([0.2], [0.0], PAST), MORE),
    "no baseline run of the same weeks": (([-0.2], [], PAST), MORE),
    "too few degrees of freedom": (([0.0, 0.001], [0.0]), MORE),
    "no degree of freedom": (([0.0, 0.001], []), MORE),
    "a disaster between looks": (
        ([*sample(3, -0.04, 0.010), -0.04], sample(4, 0.0, 0.005)), WORSE),
    "a margin that is hardly proven any more": (
        pair(8, 1, 1.2), QualityOutcome.INCONCLUSIVE),
    "one that may be": (pair(5, 0, 1.0), MORE),
    "the last look without a proof": (pair(12, 0.5, 0.5, 1.0), QualityOutcome.INCONCLUSIVE),
    "a look whose runs gave one metric, and a later one that did not": (
        ([0.5, 0.5], [0.5, 0.5, 0.505]), QualityOutcome.INCONCLUSIVE),
    "two calm arms": (pair(3, 0, 0.1), HELD),
    "a candidate less stable than the baseline": (pair(3, 0, 1.0, 0.1), MORE),
    **{
        f"a history {drift / MARGIN:g} margins off today": (
            (*pair(5, 0, 0.25), tuple(sample(12, drift, 0.005))), HELD)
        for drift in (0.4, 0.1, 0.05)
    },
}  # fmt: skip


@pytest.mark.parametrize("what", GATES)
def test_the_gate_decides_on_what_the_runs_show(what):
    runs_of, outcome = GATES[what]

    assert outcome == gate(*runs_of).outcome


def test_the_interval_holds_at_the_looks_own_level():
    finding = gate(GOOD["compile"], GOOD["baseline"])
    expected = stats.ttest_ind(GOOD["compile"], GOOD["baseline"]).confidence_interval(
        1 - 2 * spent(3, 12, 0.05)
    )

    assert pytest.approx((expected.low, expected.high), rel=1e-9) == finding.interval


@pytest.mark.parametrize(("n", "look"), [(2, 2), (3, 3), (4, 3), (7, 5), (11, 8), (20, 12)])
def test_only_looks_are_looked_at(n, look):
    """Runs past a look wait for the next, however well they would do."""
    steady = gate([*sample(look, 0.0, 0.001), *[9.0] * (n - look)], sample(n, 0.0, 0.001))

    assert (look, QualityOutcome.HELD) == (steady.look, steady.outcome)


@given(share=st.floats(0, 0.49), spread=st.floats(1e-4, 2), n=st.sampled_from([2, 3, 5, 8, 12]))
def test_a_loss_within_half_the_margin_is_never_proof_of_worse_quality(share, spread, n):
    ours, theirs = sample(n, -share * MARGIN, spread * MARGIN), sample(n, 0.0, spread * MARGIN)

    assert QualityOutcome.WORSE != gate(ours, theirs).outcome


def test_history_alone_refuses_what_no_number_of_runs_would_prove():
    history = sample(8, 0.9, 0.1)
    finding = underpowered(Samples((), (), history), 0.005, Design(8, 12, 0.05))
    margin = finding.provable_margin

    assert QualityOutcome.UNDERPOWERED == finding.outcome
    assert margin is not None
    assert f"{margin:.4g}" in finding.reason
    assert underpowered(Samples((), (), history), margin, Design(8, 12, 0.05)) is None
    # A short one refuses nothing.
    assert underpowered(Samples((), (), history[:4]), 1e-6, Design(4, 12, 0.05)) is None


def test_runs_that_production_makes_anyway_are_refused_later():
    history = sample(8, 0.9, 0.1)
    margin = 0.1 * Design(8, 12, 0.05).best_margin(0.4)
    even, fair = Design(8, 12, 0.05), Design(8, 12, 0.05, least_chance=FAIR)

    assert underpowered(Samples((), (), history), 0.8 * margin, even) is not None
    assert underpowered(Samples((), (), history), 0.8 * margin, fair) is None


@given(margins=st.floats(1.0, 5.0), spread=st.floats(0.01, 0.2), n=st.sampled_from([2, 3, 5, 12]))
def test_samples_that_show_exactly_a_loss_of_the_margin_never_pass(margins, spread, n):
    finding = gate(sample(n, -margins * MARGIN, spread * MARGIN), sample(n, 0.0, spread * MARGIN))

    assert QualityOutcome.HELD != finding.outcome


def test_a_baseline_whose_full_runs_mostly_fail_proves_nothing():
    doc = document(metrics=GOOD)
    for run in runs(doc, "baseline")[-2:]:
        run.update(finished=False, metric=None)

    assert Verdict.INCONCLUSIVE == judge(doc).verdict


def test_a_first_baseline_run_that_failed_is_made_again():
    doc = document(metrics={"baseline": GOOD["baseline"][:1], "compile": GOOD["compile"][:2]})
    runs(doc, "baseline")[0].update(finished=False, metric=None)
    decision = judge(doc)

    assert Verdict.CONTINUE == decision.verdict
    assert decision.next is not None
    assert "baseline" in [run["arm"] for run in (step_of(decision) or {})["runs"]]
