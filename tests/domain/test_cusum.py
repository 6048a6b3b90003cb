"""The cumulative sum: its run length and its false alarms against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.judging.monitor import (
    FALSE_ALARM,
    average_run_length,
    cusum_step,
    cusum_threshold,
)

RATIOS = st.floats(0.1, 5)


def simulated_run_length(h: float, k: float, *, paths: int = 4000, seed: int = 3) -> float:
    rng = np.random.default_rng(seed)
    total, length, alive = np.zeros(paths), np.zeros(paths), np.ones(paths, dtype=bool)
    while alive.any():
        total = np.maximum(0, total - k - rng.standard_normal(paths))
        length[alive] += 1
        alive &= total <= h
    return float(length.mean())


@pytest.mark.parametrize(("h", "k"), [(3, 0.5), (4, 0.5), (2, 1), (4, 0.25)])
def test_the_run_length_is_what_a_simulation_finds(h, k):
    assert pytest.approx(simulated_run_length(h, k), rel=0.1) == average_run_length(h, k)


def simulated_false_alarms(spread: float, runs: int, *, paths: int = 50_000) -> float:
    rng, h = np.random.default_rng(5), cusum_threshold(1, spread, runs=runs, error=FALSE_ALARM)
    total, alarmed = np.zeros(paths), np.zeros(paths, dtype=bool)
    for _ in range(runs):
        total = np.maximum(0, total - 0.5 - spread * rng.standard_normal(paths))
        alarmed |= total > h * spread
    return float(alarmed.mean())


@pytest.mark.parametrize("runs", [12, 50])
@pytest.mark.parametrize("spread", [0.2, 0.4, 0.6, 1.0, 1.5])
def test_false_alarms_are_as_rare_as_required(spread, runs):
    """Few runs of a noisy metric alarm less: the sum has no time to build up."""
    share = simulated_false_alarms(spread, runs)

    assert share <= 1.2 * FALSE_ALARM
    if spread <= 0.6:
        assert share >= FALSE_ALARM / 2.5


@given(ratio=RATIOS, runs=st.integers(1, 200), error=st.floats(0.001, 0.2))
def test_the_threshold_undoes_the_run_length(ratio, runs, error):
    h = cusum_threshold(1, ratio, runs=runs, error=error)
    needed = runs / -np.log1p(-error)

    if h > 0:
        assert pytest.approx(needed, rel=1e-6) == average_run_length(h, 1 / (2 * ratio))
    else:
        assert average_run_length(0, 1 / (2 * ratio)) >= needed


@given(ratio=RATIOS, unit=st.floats(1e-6, 1e6))
def test_the_threshold_knows_no_units(ratio, unit):
    one = cusum_threshold(1, ratio, runs=12, error=0.02)

    assert pytest.approx(one, rel=1e-6) == cusum_threshold(unit, ratio * unit, runs=12, error=0.02)


@pytest.mark.parametrize("spread", [1e-3, 1e-9, 1e-200])
def test_a_shift_far_beyond_the_spread_needs_no_threshold(spread):
    assert 0.0 == cusum_threshold(1, spread, runs=12, error=0.02)


def test_the_sum_grows_by_what_exceeds_half_a_shift_and_never_below_zero():
    steps = [0.0]
    for value in (8.0, 9.0, 10.0, 20.0):
        steps.append(cusum_step(steps[-1], value, reference=10.0, shift=1.0))

    assert [0.0, 1.5, 2.0, 1.5, 0.0] == steps
