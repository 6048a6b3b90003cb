"""The comparison behind the quality gate against scipy and statsmodels, and by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import stdev

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.arithmetic import squares
from compilegate.domain.judging.comparison import (
    Comparison,
    Samples,
    compare,
    replicates,
    samples_of,
)
from compilegate.domain.judging.drift import CONFLICT, KAPPA, allowed_drift, history_weight
from compilegate.domain.judging.evidence_file import read_evidence
from tests.domain.evidence_builder import document, runs, sample

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
def test_without_history_both_tails_are_scipys_pooled_t_test(one, other, margin):
    candidate, baseline = calmer_first(one, other)
    comparison = compared(candidate, baseline, [])
    shifted = [value + margin for value in candidate]
    inferior = stats.ttest_ind(shifted, baseline, alternative="greater").pvalue
    worse = stats.ttest_ind(candidate, baseline, alternative="less").pvalue

    assert pytest.approx(inferior, rel=1e-6, abs=1e-9) == comparison.p_inferior(margin)
    assert pytest.approx(worse, rel=1e-6, abs=1e-9) == comparison.p_worse


@given(one=values, other=values, level=st.floats(0.001, 0.2))
def test_without_history_the_interval_is_statsmodels(one, other, level):
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


WELCH = stats.ttest_ind(WILD, CALM, equal_var=False).df
BOTH = math.sqrt((squares(WILD) + squares(CALM)) / 4)


@pytest.mark.parametrize(
    ("candidate", "baseline", "history", "spread", "df"),
    [
        (WILD, CALM, [], stdev(WILD), WELCH), (CALM, WILD, [], BOTH, 4),
        ([0.0, 1.0], CALM, CALM, math.sqrt(0.5), 1), ([0.65], [0.70], CALM, stdev(CALM), 2),
    ],
)  # fmt: skip
def test_the_candidates_own_larger_spread_is_never_pooled_away(
    candidate, baseline, history, spread, df
):
    comparison = compared(candidate, baseline, history)

    assert pytest.approx((spread, df), rel=1e-3) == (comparison.spread, comparison.df)


def test_history_tells_the_spread_and_not_the_level():
    """Worked by hand: D = 1.0 - 2.0 and 7 degrees of freedom."""
    comparison = compared([0.9, 1.1], [1.9, 2.1, 1.9, 2.1], [1.9, 2.0, 2.1, 2.4])

    assert pytest.approx(-1.0) == comparison.difference
    assert (4, 3 + 3 + 1) == (comparison.reference_runs, comparison.df)
    assert pytest.approx(math.sqrt((0.14 + 0.04 + 0.02) / 7)) == comparison.spread
    assert pytest.approx(comparison.spread * math.sqrt(1 / 2 + 1 / 4)) == comparison.standard_error


@given(off=st.floats(-1000, 1000).map(lambda x: round(x, 3)))
def test_history_that_is_off_changes_nothing(off):
    past = [0.1, -0.1, 0.05, -0.05, 0.0]
    candidate, baseline = [0.0, 0.1, -0.1], [0.05, -0.05, 0.0]
    near, far = (compared(candidate, baseline, [x + by for x in past]) for by in (0.0, off))

    assert near.difference == far.difference
    assert pytest.approx(near.spread, rel=1e-6) == far.spread


def test_a_candidate_that_varies_more_has_the_degrees_of_freedom_of_its_own_runs():
    """The same by scipy's Welch test where both arms' spreads are taken as they are."""
    candidate, baseline = sample(4, 0.0, 3.0), sample(12, 0.0, 1.0)
    welch = stats.ttest_ind(candidate, baseline, equal_var=False)
    wild, calm = compared(candidate, baseline, []), compared(baseline, candidate, [])

    assert pytest.approx(welch.df) == wild.df
    assert 3 <= wild.df < 14 == calm.df
    assert pytest.approx(3.0) == wild.spread
    # Never below those of its own runs, which are all beside a baseline that does not vary.
    few, constant = compared(sample(6, 0.0, 3.0), [-2.0, 2.0], []), compared(WILD, [0.7] * 4, [])
    assert (5, 2) == (few.df, pytest.approx(constant.df))


def test_a_look_sees_the_baseline_runs_before_its_last_candidate_run_and_no_later_ones():
    after = (0, 1, 2, 2, 3, 5)
    samples = Samples([0.0] * 5, [0.0] * 6, [], after)

    assert [1, 2, 4, 5] == [samples.baseline_at(n) for n in (1, 2, 3, 5)]
    assert (3, 4) == (len(samples.first(3).candidate), len(samples.first(3).baseline))


def test_a_look_without_enough_baseline_runs_waits_for_the_first_later_ones():
    late = Samples([0.0] * 5, [0.0, 1.0], [], (5, 5))

    assert [1, 2, None] == [late.baseline_at(n) for n in (2, 3, 5)]
    assert Samples([0.0], [0.0], [], (0,)).baseline_at(2) is None


@given(
    arms=st.lists(st.booleans(), min_size=1, max_size=60),
    n=st.sampled_from([2, 3, 5, 8, 12]),
    later=st.integers(0, 20),
)
def test_later_runs_never_change_what_a_look_sees(arms, n, later):
    def samples(turns: list[bool]) -> Samples:
        after, ours = [], 0
        for ours_now in turns:
            ours += ours_now
            if not ours_now:
                after.append(ours)
        return Samples([0.0] * ours, [float(place) for place in range(len(after))], [], after)

    now, then = samples(arms), samples(arms + [False] * later + [True] * later)

    if seen := now.baseline_at(n):
        assert seen == then.baseline_at(n)
        assert now.first(n) == replace(then.first(n), after=now.first(n).after)


@given(n=st.integers(0, 10**6))
def test_no_history_however_long_counts_more_than_the_drift_allows(n):
    assert 0 <= history_weight(n) < 1 / KAPPA**2
    assert history_weight(n) <= n
    assert 2.0 == history_weight(4)


@pytest.mark.parametrize(("off", "valid"), [(0.99, True), (1.01, False), (-1.01, False)])
def test_earlier_runs_count_until_todays_contradict_them(off, valid):
    """Beyond that, the drift which they show is the one that is allowed for."""
    spread, today = 0.1, [0.0, 0.2, 0.1]
    shift = off * CONFLICT * math.sqrt(1 / 3 + 1 / 5 + KAPPA**2)
    past = [0.1 + spread * (shift + place) for place in range(-2, 3)]
    expected = KAPPA if valid else abs(shift)

    assert pytest.approx(expected) == allowed_drift(past, today, spread**2)


def test_without_a_spread_or_a_side_no_drift_is_seen():
    nothing = [([1.0], [2.0], 0.0), ([], [2.0], 1.0), ([1.0], [], 1.0)]

    assert [KAPPA] * 3 == [allowed_drift(*one) for one in nothing]


@pytest.mark.parametrize(
    ("candidate", "baseline", "history"),
    [([], CALM, WILD), (CALM, [], WILD), ([0.7], [0.7], []), ([0.7], [0.7], [0.7])],
    ids=["no candidate", "no baseline", "no spread", "no spread with history"],
)
def test_samples_without_a_spread_or_without_a_side_give_no_comparison(
    candidate, baseline, history
):
    assert compare(Samples(candidate, baseline, history)) is None


def test_runs_of_the_same_weeks_are_compared_and_earlier_ones_are_history():
    """Of a loss: the last baseline run before the candidate's first, and all since."""
    doc = document(metrics={"baseline": [1.0, 2.0, 3.0, 4.0, 5.0], "compile": [6.0, 7.0]})
    doc["quality"]["history"] = [9.0]
    for name, orders in (("baseline", (0, 1, 2, 4, 6)), ("compile", (4, 5))):
        for run, order in zip(runs(doc, name), orders, strict=True):
            run["order"] = order
    evidence = read_evidence(doc)
    mine = evidence.candidates[0]
    before = samples_of(replace(mine, quality=()), evidence)

    assert samples_of(mine, evidence) == Samples(
        [-6.0, -7.0], [-3.0, -4.0, -5.0], [-9.0, -1.0, -2.0], (0, 0, 2)
    )
    assert before == Samples([], [-5.0], [-9.0, -1.0, -2.0, -3.0, -4.0], (0,))


def test_a_seed_counts_once_on_the_same_data_where_it_is_recorded():
    run = read_evidence(document(metrics={"compile": [1.0]})).candidates[0].quality[0]
    draws = ((1, "d"), (1, "d"), (None, "d"), (None, "d"), (1, "e"), (2, "d"))
    made = [replace(run, seed=seed, record={"fingerprint": {"data_sha256": data}})
            for seed, data in draws]  # fmt: skip

    assert [made[place] for place in (0, 2, 3, 4, 5)] == replicates(made)
