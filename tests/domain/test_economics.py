"""Money: each formula against figures worked out by hand, and its shape over all inputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.economics import (
    Range,
    Saving,
    amdahl_speedup,
    annual_saving_usd,
    annual_training_usd,
    break_even_seconds,
    payback_days,
    saved_share,
    saving_from_speedup,
)

amounts = st.floats(0.01, 1e6)
speedups = st.floats(1.01, 10)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        # Eight ml.g5.48xlarge at 20.36 USD, three runs of six hours a week.
        (152455.68, annual_training_usd(8 * 20.36, 6.0, 3)),
        (1 / 3, saved_share(1.5)),
        (-0.2, saved_share(1.25, price_ratio=1.5)),
        (1.5, amdahl_speedup(1.0, 1.5)),
        (1.0, amdahl_speedup(0.0, 1.5)),
        (1.2, amdahl_speedup(0.5, 1.5)),
        (1 / (0.15 + 0.85 / 1.5), amdahl_speedup(0.85, 1.5)),
        (9 * 60, break_even_seconds(90, 1.2)),
        (30 * 60, break_even_seconds(300, 1.2)),
        (15 * 60, break_even_seconds(300, 1.5)),
        (None, break_even_seconds(90, 1.0)),
        (None, break_even_seconds(90, 0.8)),
        # A third of 12,000 USD, less 60 s of every run of 1 h; never below 0.
        (12_000 * (1 / 3 - 1 / 60), annual_saving_usd(12_000, 1.0, 1.5, 60)),
        (0, annual_saving_usd(12_000, 0.01, 1.5, 60)),
        (36.5, payback_days(1000, 10_000)),
        (None, payback_days(1000, 0)),
    ],
)
def test_a_figure_is_what_it_is_by_hand(expected, got):
    assert got == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("speedup", "interval", "trial", "price_ratio", "expected"),
    [
        (1.25, Range(1.0, 2.0), 60, 1.0, Saving(20, 2080, Range(0, 5200), 3)),
        (1.25, Range(1.0, 2.0), 60, 0.5, Saving(60, 6240, Range(5200, 7800), 1)),
        (1.6, Range(0.0, 2.0), None, 1.0, Saving(37.5, 3900, None, None)),
        (2.0, Range(1.0, float("inf")), 10, 1.0, Saving(50, 5200, None, 0.2)),
        (0.8, None, 60, 1.0, Saving(-25, -2600, None, None)),
    ],
)
def test_a_measured_saving_carries_its_interval_and_pays_the_trial_back(
    speedup, interval, trial, price_ratio, expected
):
    """Of two runs a week at 100 USD."""
    saving = saving_from_speedup(
        usd_per_run=100, runs_per_week=2, speedup=speedup, interval=interval, trial=trial,
        price_ratio=price_ratio,
    )  # fmt: skip
    ends, bounds = saving.interval_usd_per_year, expected.interval_usd_per_year

    assert pytest.approx((expected.usd_per_run, expected.usd_per_year)) == (
        saving.usd_per_run, saving.usd_per_year,
    )  # fmt: skip
    assert (ends and pytest.approx((ends.low, ends.high))) == (bounds and (bounds.low, bounds.high))
    assert (saving.payback_runs and pytest.approx(saving.payback_runs)) == expected.payback_runs


@given(overhead=st.floats(0.1, 1e4), speedup=speedups)
def test_at_break_even_both_arms_take_equally_long(overhead, speedup):
    length = break_even_seconds(overhead, speedup)

    assert pytest.approx(length, rel=1e-9) == overhead + length / speedup


@given(annual=amounts, hours=st.floats(0.01, 100), speedup=speedups, overhead=st.floats(0, 1e4))
def test_a_saving_begins_at_the_break_even(annual, hours, speedup, overhead):
    length = break_even_seconds(overhead, speedup)
    saved = annual_saving_usd(annual, hours, speedup, overhead)

    if abs(hours * 3600 - length) > 1e-6 * length:
        assert (saved > 0) == (hours * 3600 > length)
