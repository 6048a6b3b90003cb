"""Looks spend no more than the error, and the runs that a proof takes are stated honestly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from compilegate.domain.judging import design as designing
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import (
    CALIBRATED,
    EVEN,
    FAIR,
    LIKELY,
    SCHEDULE,
    SHADOW_RUNS,
    VERY_LIKELY,
    Design,
    design_for,
    last_look,
    look_at,
    looks,
    next_look,
    runs_for_one_look,
    runs_left_for,
    spent,
)
from compilegate.domain.judging.quality import QualityOutcome, judge_quality
from compilegate.domain.workload.model import Policy

ALPHA = 0.05
HISTORIES = (0, 5, 20)
# First look that proves the margin with a chance of 80 % / 90 %; histories of 0, 5 and 20 runs.
# The study's own look constants are a little larger, so that it may need a look less.
TABLE = {
    (12, 0.2): ((3, 3), (2, 2), (2, 2)),
    (12, 0.4): ((5, 8), (5, 5), (3, 5)),
    (12, 0.6): ((8, 12), (8, 12), (8, 8)),
    (12, 0.8): ((12, None), (12, None), (12, None)),
    (12, 1.0): ((None, None), (None, None), (None, None)),
    (12, 1.5): ((None, None), (None, None), (None, None)),
    (36, 0.2): ((3, 3), (2, 2), (2, 2)),
    (36, 0.4): ((8, 8), (5, 5), (5, 5)),
    (36, 0.6): ((12, 12), (8, 12), (8, 12)),
    (36, 0.8): ((18, 18), (18, 18), (12, 18)),
    (36, 1.0): ((24, 36), (24, 24), (18, 24)),
    (36, 1.5): ((None, None), (None, None), (36, None)),
}


@pytest.mark.parametrize("n_max", SCHEDULE)
def test_looks_spend_about_what_needs_no_assumption_and_less_than_one_look_each(
    n_max,
):
    bonferroni = 1 / sum(n / n_max for n in looks(n_max))

    assert bonferroni <= CALIBRATED[n_max] <= 1


@pytest.mark.parametrize("n_max", SCHEDULE)
def test_later_looks_may_spend_more(n_max):
    levels = [spent(n, n_max, ALPHA) for n in looks(n_max)]

    assert sorted(levels) == levels
    assert levels[-1] <= ALPHA


def test_looks_come_at_fixed_numbers_of_runs():
    assert [None, None, 2, 3, 3, 5, 12] == [look_at(n, 12) for n in (0, 1, 2, 3, 4, 5, 40)]
    assert [2, 3, 12, None] == [next_look(n, 12) for n in (0, 2, 11, 12)]
    assert [None, 2, 3, 12, 96] == [last_look(n) for n in (1.9, 2, 4.5, 17, math.inf)]


def error_at_the_margin(
    paths: int, *, history: int, n_max: int, sd: float, seed: int, drift: float = 0.5
) -> float:
    """Share of candidates promoted that lose exactly the margin of 1, one look after another.

    The history is off by ``drift`` standard deviations, by chance.
    """
    rng, held = np.random.default_rng(seed), 0
    design = Design(history, n_max, ALPHA)
    for _ in range(paths):
        candidate, baseline = sd * rng.standard_normal((2, n_max))
        past = sd * (rng.standard_normal(history) + drift * rng.standard_normal())
        for n in looks(n_max):
            samples = Samples((candidate[:n] - 1).tolist(), baseline[:n].tolist(), past.tolist())
            outcome = judge_quality(samples, 1.0, design).outcome
            if outcome is not QualityOutcome.MORE_RUNS:
                held += outcome is QualityOutcome.HELD
                break
    return held / paths


@pytest.mark.parametrize("history", HISTORIES)
def test_the_looks_together_err_at_most_at_the_level(history, monkeypatch):
    """2,000 paths: the bound is the level and three standard errors.

    tests/benchmarks/test_calibration.py has more paths, tests/benchmarks/test_gate.py each of them.
    """
    # Each path has degrees of freedom of its own. scipy's quantile is the same to nine digits
    # (test_student_t.py) and takes a hundredth of the time.
    monkeypatch.setattr(designing, "quantile", lambda p, df: float(special.stdtrit(df, p)))
    error = error_at_the_margin(2000, history=history, n_max=12, sd=1.0, seed=history)

    assert error <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / 2000)


@pytest.mark.parametrize(("n_max", "relative_spread"), TABLE)
def test_the_planning_table_is_the_studys_or_one_look_later(n_max, relative_spread):
    order = [*SCHEDULE, None]
    for history, expected in zip(HISTORIES, TABLE[n_max, relative_spread], strict=True):
        design = Design(history, n_max, ALPHA)
        for chance, look in zip((LIKELY, VERY_LIKELY), expected, strict=True):
            needed = design.runs_needed(relative_spread, chance)
            later = order.index(needed) - order.index(look)

            assert later in (0, 1), (history, chance, look, needed)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("history", HISTORIES)
def test_provable_margins_are_those_of_scipys_quantiles(n, history):
    df = max(history - 1, 0) + 2 * (n - 1)
    quantiles = stats.t.ppf(1 - spent(n, 12, ALPHA), df) + stats.t.ppf(0.8, df)

    provable = Design(history, 12, ALPHA).provable_margin(n)

    assert pytest.approx(quantiles * math.sqrt(2 / n)) == provable


def exact_runs(relative_spread: float, level: float, chance: float) -> int:
    from statsmodels.stats.power import TTestIndPower  # noqa: PLC0415 - it brings pandas

    power, n = TTestIndPower().power, 2
    while power(1 / relative_spread, n, level, ratio=1, alternative="larger") < chance:
        n += 1
    return n


@pytest.mark.parametrize("relative_spread", [0.2, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0])
@pytest.mark.parametrize("level", [0.05, 0.025, 0.0125])
@pytest.mark.parametrize("chance", [EVEN, LIKELY, VERY_LIKELY])
def test_runs_for_one_look_are_within_one_of_the_exact_noncentral_t(relative_spread, level, chance):
    """Two central quantiles stand in for the noncentral t; one run is what that costs."""
    needed = runs_for_one_look(relative_spread, history=0, level=level, chance=chance)

    assert needed is not None
    assert abs(needed - exact_runs(relative_spread, level, chance)) <= 1


@pytest.mark.parametrize("n", [5, 8, 12])
@pytest.mark.parametrize("chance", [LIKELY, VERY_LIKELY])
def test_a_look_proves_its_provable_margin_with_about_the_chance_it_says(n, chance):
    """From five runs on; at two or three the stand-in is off by up to a tenth."""
    margin, df = Design(0, 12, ALPHA).provable_margin(n, chance), 2 * (n - 1)
    assert margin is not None
    bar = stats.t.isf(spent(n, 12, ALPHA), df)
    exact = stats.nct.sf(bar, df, margin / math.sqrt(2 / n))

    assert pytest.approx(chance, abs=0.02) == exact


def test_a_spread_that_no_number_of_runs_masters_needs_none():
    assert runs_for_one_look(20, history=0, level=ALPHA) is None
    assert Design(0, 36, ALPHA).runs_needed(20) is None


def test_the_best_margin_is_the_last_looks():
    design = Design(5, 12, ALPHA)

    assert design.provable_margin(12) == design.best_margin()


@pytest.mark.parametrize(
    ("mode", "most", "remaining", "n_max"),
    [
        ("shadow", 36, None, SHADOW_RUNS),
        ("shadow", 24, None, 24),
        ("shadow", Policy().max_quality_runs, None, SHADOW_RUNS),
        ("shadow", 37, None, 36),
        ("shadow", 95, None, 36),
        ("shadow", 95, 60, 24),
        ("hybrid", 36, None, 36),
        ("hybrid", 96, None, 96),
        ("hybrid", 96, 200, 72),
        ("canary", 12, None, 12),
        ("hybrid", 36, 24, 12),
        ("hybrid", 36, 5, 2),
        ("hybrid", 36, 3.9, None),
    ],
)
def test_a_design_uses_what_policy_allows_and_half_of_what_remains(mode, most, remaining, n_max):
    policy = Policy(quality_runs=mode, max_quality_runs=most)
    design = design_for(policy, history=3, candidates=2, runs_remaining=remaining)

    assert n_max == (design.n_max if design else None)
    if design:
        assert (3, policy.alpha / 2) == (design.history, design.level)
        assert (EVEN if mode == "shadow" else FAIR) == design.least_chance


@pytest.mark.parametrize(("n", "left"), [(5, 10), (36, 72), (37, 93), (54, 135), (96, 240)])
def test_a_proof_takes_half_of_the_runs_left_and_later_looks_two_fifths(n, left):
    assert left == runs_left_for(n)
