"""The statistics against scipy, the outside oracle, and against simulation."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain import student_t
from compilegate.domain.noninferiority import Samples
from compilegate.domain.power import Design
from compilegate.domain.quality import QualityOutcome, judge_quality
from compilegate.domain.steady_state import analyse


@given(t=st.floats(-50, 50), df=st.floats(1, 500))
@settings(max_examples=300, deadline=None)
def test_tail_agrees_with_scipy(t: float, df: float) -> None:
    # scipy itself is off by 2e-9 for t near zero and one degree of freedom.
    assert student_t.upper_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-10, abs=5e-9)


@pytest.mark.parametrize(("t", "df"), [(12.0, 3), (40.0, 10), (5.0, 200)])
def test_far_tails_keep_their_digits(t: float, df: float) -> None:
    assert student_t.upper_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-10, abs=0)


@given(p=st.floats(1e-6, 1 - 1e-6), df=st.integers(1, 100))
@settings(max_examples=200, deadline=None)
def test_quantile_agrees_with_scipy(p: float, df: int) -> None:
    assert student_t.quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("p", "df"), [(0.0, 5), (1.0, 5)])
def test_an_impossible_probability_is_an_error(p: float, df: float) -> None:
    with pytest.raises(ValueError, match="0 < p < 1"):
        student_t.quantile(p, df)


def test_no_degrees_of_freedom_is_an_error() -> None:
    with pytest.raises(ValueError, match="df > 0"):
        student_t.upper_tail(1.0, 0)


DESIGN = Design(history=0, n_max=12, level=0.05)


def test_without_history_the_comparison_is_the_pooled_t_test() -> None:
    xs, ys = [0.7, 0.72, 0.69], [0.60, 0.80, 0.70]
    found = judge_quality(Samples(xs, ys, ()), 0.5, DESIGN)
    level = found.level
    assert level is not None
    expected = stats.ttest_ind(xs, ys).confidence_interval(1 - 2 * level)

    assert found.interval == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-9)


def test_the_candidates_own_larger_spread_is_never_pooled_away() -> None:
    calm, wild = [0.70, 0.7001, 0.6999], [0.60, 0.80, 0.70]
    finding = judge_quality(Samples(wild, calm, ()), 0.1, DESIGN)

    assert finding.outcome in (QualityOutcome.INCONCLUSIVE, QualityOutcome.MORE_RUNS)


def test_warm_up_is_cut_where_the_data_settles_and_charged_as_overhead() -> None:
    rng = random.Random(3)
    slow = [0.9, 0.5] + [0.2] * 28
    steps = slow + [0.1 * (1 + 0.01 * rng.gauss(0, 1)) for _ in range(130)]
    found = analyse(steps, compile_seconds=0.0, baseline_median=0.1, full_run_steps=1000)

    assert found is not None
    assert 25 <= found.warm_up_steps <= 35
    # The cut may leave a third of a window of slow steps behind: it errs against neither arm.
    assert found.steady_step_seconds == pytest.approx(0.1, rel=0.04)
    assert found.overhead_seconds == pytest.approx(sum(slow) - 30 * 0.1, rel=0.2)


def test_compilation_outside_the_steps_is_charged_too() -> None:
    found = analyse([0.1] * 100, compile_seconds=12.0, baseline_median=0.1, full_run_steps=1000)

    assert found is not None
    assert found.overhead_seconds == 12.0


def test_a_late_recompilation_is_overhead_and_recurs_over_a_longer_run() -> None:
    steps = [0.1] * 160
    steps[120] = 5.0
    found = analyse(steps, compile_seconds=0.0, baseline_median=0.1, full_run_steps=10_000)

    assert found is not None
    assert found.spikes == 1
    assert 5.0 < found.overhead_seconds < 15.0
    assert found.steady_step_seconds == pytest.approx(0.1)


@pytest.mark.parametrize("steps", [[0.1] * 39, [0.1] * 50 + [-1.0], [0.1] * 50 + [float("nan")]])
def test_a_segment_without_a_steady_state_has_none(steps: list[float]) -> None:
    assert analyse(steps, compile_seconds=0.0, baseline_median=0.1, full_run_steps=100) is None
