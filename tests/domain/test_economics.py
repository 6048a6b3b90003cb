"""Money: each formula against figures worked out by hand, and its shape over all inputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.economics import (
    amdahl_speedup,
    annual_saving_usd,
    annual_training_usd,
    break_even_seconds,
    payback_days,
    saved_share,
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
