"""The comparison behind the quality gate against scipy and statsmodels, and by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.arithmetic import squares
from compilegate.domain.judging.noninferiority import (
    CONFLICT,
    KAPPA,
    Comparison,
    Samples,
    compare,
    history_weight,
)

CALM, WILD = [0.70, 0.72, 0.69], [0.60, 0.80, 0.70]
values = st.lists(st.floats(-1, 1).map(lambda x: round(x, 6)), min_size=2, max_size=12)


def compared(candidate: list[float], baseline: list[float], history: list[float]) -> Comparison:
    comparison = compare(Samples(candidate, baseline, history))
    assert comparison is not None
    return comparison


def calmer_first(one: list[float], other: list[float]) -> tuple[list[float], list[float]]:
    """Two samples of equal size, so that the pooled spread is not below the first one's own."""
    size = min(len(one), len(other))
    pair = sorted([one[:size], other[:size]], key=squares)
    assume(1e-6 < squares(pair[0]) < squares(pair[1]))
    return pair[0], pair[1]


@given(one=values, other=values, margin=st.floats(0.001, 1))
def test_without_history_both_tails_are_scipys_pooled_t_test(
    one: list[float], other: list[float], margin: float
) -> None:
    candidate, baseline = calmer_first(one, other)
    comparison = compared(candidate, baseline, [])
    shifted = [value + margin for value in candidate]
    inferior = stats.ttest_ind(shifted, baseline, alternative="greater").pvalue
    worse = stats.ttest_ind(candidate, baseline, alternative="less").pvalue

    assert pytest.approx(inferior, rel=1e-6, abs=1e-9) == comparison.p_inferior(margin)
    assert pytest.approx(worse, rel=1e-6, abs=1e-9) == comparison.p_worse


@given(one=values, other=values, level=st.floats(0.001, 0.2))
def test_without_history_the_interval_is_statsmodels(
    one: list[float], other: list[float], level: float
) -> None:
    from statsmodels.stats.weightstats import (  # noqa: PLC0415 - it brings pandas
        CompareMeans,
        DescrStatsW,
    )

    candidate, baseline = calmer_first(one, other)
    means = CompareMeans(DescrStatsW(candidate), DescrStatsW(baseline))
    expected = means.tconfint_diff(alpha=2 * level, usevar="pooled")

    assert pytest.approx(expected, rel=1e-6, abs=1e-9) == (
        compared(candidate, baseline, []).interval(level)
    )


def test_the_candidates_own_larger_spread_is_never_pooled_away() -> None:
    comparison = compared(WILD, CALM, [])

    assert pytest.approx(math.sqrt(squares(WILD) / 2)) == comparison.spread
    assert pytest.approx(math.sqrt((squares(WILD) + squares(CALM)) / 4)) == (
        compared(CALM, WILD, []).spread
    )


def test_history_counts_as_its_weight_under_drift() -> None:
    """Worked by hand: n_0 = 4 and kappa = 1/2 make w_H = 1 / (1/4 + 1/4) = 2, beside w_B = 2."""
    comparison = compared([0.9, 1.1], [1.9, 2.1], [1.9, 2.0, 2.1, 2.4])

    assert (2.0, 4.0, KAPPA) == (
        comparison.history_weight,
        comparison.reference_runs,
        comparison.kappa,
    )
    assert pytest.approx(1.0 - (2 * 2.1 + 2 * 2.0) / 4) == comparison.difference
    assert 3 + 1 + 1 == comparison.df
    assert pytest.approx(math.sqrt((0.14 + 0.02 + 0.02) / 5)) == comparison.spread
    assert pytest.approx(comparison.spread * math.sqrt(1 / 2 + 1 / 4)) == comparison.standard_error


@given(n=st.integers(0, 10**6))
def test_no_history_however_long_counts_more_than_the_drift_allows(n: int) -> None:
    assert 0 <= history_weight(n) < 1 / KAPPA**2
    assert history_weight(n) <= n


@pytest.mark.parametrize("drift", [5.0, 50.0, -50.0])
def test_history_that_contradicts_today_fades_away(drift: float) -> None:
    past = [drift + value for value in (-0.1, 0.0, 0.1, 0.0)]
    comparison = compared([0.0, 0.1], [0.05, -0.05, 0.0], past)

    assert comparison.kappa > KAPPA
    assert comparison.history_weight < 0.01
    assert pytest.approx(0.05, abs=0.05) == comparison.difference


def test_history_within_its_allowed_drift_keeps_its_weight() -> None:
    spread, baseline = 0.1, [0.0, 0.2, 0.1]
    allowed = CONFLICT * spread * math.sqrt(1 / 3 + 1 / 3 + KAPPA**2)
    centre = 0.1 - 0.9 * allowed
    history = [centre - spread, centre, centre + spread]

    assert KAPPA == compared([0.0, 0.1, 0.2], baseline, history).kappa


@given(shift=st.floats(-100, 100))
def test_history_pulls_the_reference_by_less_than_one_spread(shift: float) -> None:
    """However far history is off, what it does to the reference stays bounded."""
    candidate, baseline = [0.0, 0.1, -0.1], [0.05, -0.05, 0.0]
    history = [shift + value for value in (0.1, -0.1, 0.05, -0.05, 0.0)]
    alone, comparison = compared(candidate, baseline, []), compared(candidate, baseline, history)

    assert abs(comparison.difference - alone.difference) < comparison.spread


@pytest.mark.parametrize(
    ("candidate", "baseline", "history"),
    [([], CALM, WILD), (CALM, [], []), ([0.7], [0.7], []), ([0.7], [], [0.7])],
    ids=["no candidate", "no reference", "no spread", "no spread with history"],
)
def test_what_cannot_be_compared_is_not(
    candidate: list[float], baseline: list[float], history: list[float]
) -> None:
    assert compare(Samples(candidate, baseline, history)) is None


def test_one_candidate_run_borrows_its_spread() -> None:
    comparison = compared([0.65], [], CALM)

    assert (2, 1) == (comparison.df, comparison.runs)
    assert pytest.approx(math.sqrt(squares(CALM) / 2)) == comparison.spread
