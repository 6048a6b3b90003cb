"""Money: each formula against figures worked out by hand, and its shape over all inputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.economics import (
    Range,
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


def test_a_years_training_is_price_times_hours_times_runs() -> None:
    # Eight ml.g5.48xlarge at 20.36 USD, three runs of six hours a week.
    assert pytest.approx(152455.68) == annual_training_usd(8 * 20.36, 6.0, 3)


def test_a_speedup_of_one_and_a_half_saves_a_third() -> None:
    assert pytest.approx(1 / 3) == saved_share(1.5)


def test_a_faster_but_dearer_cluster_can_cost_more() -> None:
    assert pytest.approx(-0.2) == saved_share(1.25, price_ratio=1.5)


@pytest.mark.parametrize(
    ("share", "compute", "expected"),
    [(1.0, 1.5, 1.5), (0.0, 1.5, 1.0), (0.5, 1.5, 1.2), (0.85, 1.5, 1.3953), (0.5, 1.0, 1.0)],
)
def test_a_faster_computation_speeds_up_its_share_of_a_step(
    share: float, compute: float, expected: float
) -> None:
    assert pytest.approx(expected, abs=1e-4) == amdahl_speedup(share, compute)


@pytest.mark.parametrize(
    ("overhead", "speedup", "minutes"),
    [(90, 1.2, 9), (300, 1.2, 30), (900, 1.2, 90), (300, 1.5, 15)],
)
def test_a_run_breaks_even_where_its_saving_is_the_overhead(
    overhead: float, speedup: float, minutes: float
) -> None:
    assert pytest.approx(minutes * 60) == break_even_seconds(overhead, speedup)


@pytest.mark.parametrize("speedup", [1.0, 0.8])
def test_no_run_is_long_enough_without_a_speedup(speedup: float) -> None:
    assert break_even_seconds(90, speedup) is None


@given(overhead=st.floats(0.1, 1e4), speedup=speedups)
def test_at_break_even_both_arms_take_equally_long(overhead: float, speedup: float) -> None:
    length = break_even_seconds(overhead, speedup)

    assert length is not None
    assert pytest.approx(length, rel=1e-9) == overhead + length / speedup


def test_a_years_saving_pays_for_compiling_every_run_first() -> None:
    # A third of 12,000 USD, less 60 s of every run of 1 h.
    assert pytest.approx(12_000 * (1 / 3 - 1 / 60)) == annual_saving_usd(12_000, 1.0, 1.5, 60)


def test_a_compiler_that_costs_more_than_it_saves_stays_off() -> None:
    assert annual_saving_usd(12_000, 0.01, 1.5, 60) == 0


@given(annual=amounts, hours=st.floats(0.01, 100), speedup=speedups, overhead=st.floats(0, 1e4))
def test_a_saving_begins_at_the_break_even(
    annual: float, hours: float, speedup: float, overhead: float
) -> None:
    length = break_even_seconds(overhead, speedup)
    assert length is not None

    saved = annual_saving_usd(annual, hours, speedup, overhead)

    if abs(hours * 3600 - length) > 1e-6 * length:
        assert (saved > 0) == (hours * 3600 > length)


def test_payback_is_trial_over_daily_saving() -> None:
    assert pytest.approx(36.5) == payback_days(1000, 10_000)
    assert payback_days(1000, 0) is None


def test_a_measured_saving_carries_its_interval() -> None:
    saving = saving_from_speedup(
        usd_per_run=100, runs_per_week=2, speedup=1.25, interval=Range(1.0, 2.0), trial=60
    )

    assert pytest.approx(20) == saving.usd_per_run
    assert pytest.approx(2080) == saving.usd_per_year
    assert Range(0.0, 5200.0) == saving.interval_usd_per_year
    assert pytest.approx(3) == saving.payback_runs


def test_what_saves_nothing_never_pays_back() -> None:
    saving = saving_from_speedup(
        usd_per_run=100, runs_per_week=2, speedup=0.8, interval=None, trial=60
    )

    assert pytest.approx(-25) == saving.usd_per_run
    assert saving.payback_runs is None
    assert saving.interval_usd_per_year is None


def test_without_a_trials_price_there_is_no_payback() -> None:
    saving = saving_from_speedup(
        usd_per_run=100, runs_per_week=2, speedup=1.5, interval=None, trial=None
    )

    assert saving.payback_runs is None


@given(usd=amounts, speedup=speedups, width=st.floats(0, 1))
def test_savings_scale_with_the_price_and_lie_in_their_interval(
    usd: float, speedup: float, width: float
) -> None:
    interval = Range(speedup, speedup + width)
    one, two = (
        saving_from_speedup(
            usd_per_run=price, runs_per_week=3, speedup=speedup, interval=interval, trial=None
        )
        for price in (usd, 2 * usd)
    )

    assert pytest.approx(2 * one.usd_per_year, rel=1e-9) == two.usd_per_year
    assert one.interval_usd_per_year is not None
    assert one.interval_usd_per_year.low <= one.usd_per_year * (1 + 1e-9)
    assert one.usd_per_year <= one.interval_usd_per_year.high * (1 + 1e-9)
