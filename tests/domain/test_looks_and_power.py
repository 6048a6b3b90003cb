"""Looks spend no more than the error, and the runs that a proof takes are stated honestly."""

from __future__ import annotations

import math

import pytest
from scipy import stats

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
    provable,
    runs_for_one_look,
    runs_left_for,
    spent,
)
from compilegate.domain.workload.model import Policy

ALPHA = 0.05
HISTORIES = (0, 5, 20)


@pytest.mark.parametrize(
    ("history", "n_max", "relative_spread", "likely", "very_likely"),
    [
        (0, 12, 0.2, 3, 3), (0, 12, 0.4, 5, 8), (0, 12, 0.8, 12, None), (0, 12, 1.0, None, None),
        (20, 12, 0.2, 2, 2), (5, 12, 0.4, 5, 5), (0, 36, 0.2, 5, 5), (20, 36, 0.4, 5, 8),
        (5, 36, 1.0, 24, 36), (20, 36, 1.0, 24, 24), (20, 36, 1.5, 36, None),
    ],
)  # fmt: skip
def test_the_runs_needed_are_those_of_the_first_look_that_proves_the_margin(
    history, n_max, relative_spread, likely, very_likely
):
    """Each is the look of the planning study or the one after it, whose constants are larger."""
    design = Design(history, n_max, ALPHA)

    assert likely == design.runs_needed(relative_spread)
    assert very_likely == design.runs_needed(relative_spread, VERY_LIKELY)


@pytest.mark.parametrize("n_max", SCHEDULE)
def test_looks_spend_about_what_needs_no_assumption_and_less_than_one_look_each(
    n_max,
):
    bonferroni = 1 / sum(n / n_max for n in looks(n_max))

    assert bonferroni <= CALIBRATED[n_max] <= 1


def test_looks_come_at_fixed_numbers_of_runs():
    assert [None, None, 2, 3, 3, 5, 12] == [look_at(n, 12) for n in (0, 1, 2, 3, 4, 5, 40)]
    assert [2, 3, 12, None] == [next_look(n, 12) for n in (0, 2, 11, 12)]
    assert [None, 2, 3, 12, 96] == [last_look(n) for n in (1.9, 2, 4.5, 17, math.inf)]


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

    assert abs(needed - exact_runs(relative_spread, level, chance)) <= 1


@pytest.mark.parametrize("n", [5, 8, 12])
@pytest.mark.parametrize("chance", [LIKELY, VERY_LIKELY])
def test_a_look_proves_its_provable_margin_with_about_the_chance_it_says(n, chance):
    """From five runs on; at two or three the stand-in is off by up to a tenth."""
    margin, df = Design(0, 12, ALPHA).provable_margin(n, chance), 2 * (n - 1)
    bar = stats.t.isf(spent(n, 12, ALPHA), df)
    exact = stats.nct.sf(bar, df, margin / math.sqrt(2 / n))

    assert pytest.approx(chance, abs=0.02) == exact


@pytest.mark.parametrize("n", [2, 3, 8])
def test_one_look_that_just_proves_the_margin_is_enough(n):
    margin = provable(n, 20, ALPHA, LIKELY)
    beyond = margin * (1 / margin) > 1  # by the last digit

    assert n + beyond == runs_for_one_look(1 / margin, history=20, level=ALPHA)
    design = Design(20, n, ALPHA)
    least = design.provable_margin(n)
    assert (None if least * (1 / least) > 1 else n) == design.runs_needed(1 / least)


def test_a_spread_that_no_number_of_runs_masters_needs_none():
    assert runs_for_one_look(20, history=0, level=ALPHA) is None
    assert Design(0, 36, ALPHA).runs_needed(20) is None


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
        ("hybrid", 36, 4, 2),
        ("hybrid", 36, 3.9, None),
    ],
)
def test_a_design_uses_what_policy_allows_and_half_of_what_remains(mode, most, remaining, n_max):
    policy = Policy(quality_runs=mode, max_quality_runs=most)
    design = design_for(policy, history=3, candidates=2, runs_remaining=remaining)

    assert n_max == (design.n_max if design else None)
    if design:
        assert (3, policy.alpha / 2) == (design.history, design.level)
        assert (1.0, 1) == (design.rho, design.metrics)
        assert Design(3, 12, 0.05, least_chance=EVEN, rho=1.0, metrics=1) == Design(3, 12, 0.05)
        assert (EVEN if mode == "shadow" else FAIR) == design.least_chance


@pytest.mark.parametrize(("n", "left"), [(5, 10), (36, 72), (37, 93), (54, 135), (96, 240)])
def test_a_proof_takes_half_of_the_runs_left_and_later_looks_two_fifths(n, left):
    assert left == runs_left_for(n)
