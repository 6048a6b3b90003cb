"""Where a segment settles, and what before and after it is overhead."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.judging.steady_state import MIN_STEPS, MIN_WARM_UP, Segment, analyse


def steady(steps: list[float], *, compiling: float = 0.0, full_run: int = 1000) -> Segment:
    segment = analyse(
        steps, compile_seconds=compiling, baseline_median=0.1, full_run_steps=full_run
    )
    assert segment is not None
    return segment


def noisy(count: int, *, seed: int = 3, step: float = 0.1, noise: float = 0.01) -> list[float]:
    rng = random.Random(seed)
    return [step * (1 + noise * rng.gauss(0, 1)) for _ in range(count)]


def test_warm_up_is_cut_where_the_data_is_steady_and_counted_as_overhead():
    slow = [0.9, 0.5] + [0.2] * 28
    segment = steady(slow + noisy(130))

    assert 25 <= segment.warm_up_steps <= 35
    # The cut may leave a third of a window of slow steps behind: it errs against neither arm.
    assert pytest.approx(0.1, rel=0.04) == segment.steady_step_seconds
    assert pytest.approx(sum(slow) - 30 * 0.1, rel=0.2) == segment.overhead_seconds


def test_a_segment_that_is_steady_from_the_start_has_the_least_warm_up_and_no_overhead():
    segment = steady([0.1] * 160)

    assert (MIN_WARM_UP, 0.0) == (segment.warm_up_steps, segment.late_seconds)
    assert pytest.approx(0, abs=1e-12) == segment.overhead_seconds


@pytest.mark.parametrize(
    ("slow", "warm_up"), [(27, 20), (28, 25), (30, 25), (67, 60), (87, 80), (112, 80)]
)
def test_the_warm_up_ends_with_the_first_fifth_step_whose_window_is_mostly_steady(slow, warm_up):
    assert warm_up == steady([0.5] * slow + [0.1] * (160 - slow)).warm_up_steps


def test_the_outermost_fiftieth_is_pulled_in_and_what_it_adds_is_lost():
    """Of 100 steps after a warm-up of 20: the two slowest and the two quickest."""
    tail = [0.09] + [0.10] * 47 + [0.12] * 47 + [0.13] + [0.9, 0.5, 0.01, 0.02]
    segment = steady([0.2] * 20 + tail)

    assert 20 == segment.warm_up_steps
    assert pytest.approx(0.11) == segment.steady_step_seconds
    assert pytest.approx(sum(tail) / 100 - 0.11) == segment.lost_step_seconds
    assert pytest.approx(20 * (0.2 - 0.11)) == segment.overhead_seconds


def test_compilation_inside_the_first_step_is_counted_once():
    segment = steady([12.1] + [0.1] * 159, compiling=12.0)

    assert pytest.approx(12.0) == segment.overhead_seconds


def test_a_late_recompilation_recurs_over_a_longer_run_as_the_logarithm_of_its_steps():
    steps = [0.1] * 160
    steps[110], steps[120] = 1.0, 5.1  # ten times the baseline's is not yet one
    short, long = steady(steps, full_run=160), steady(steps, full_run=160**2)
    # One that is shorter than the segment still pays a recompilation whole.
    assert short.overhead_seconds == steady(steps, full_run=50).overhead_seconds

    assert pytest.approx(5.0) == short.late_seconds
    assert pytest.approx(0.1) == short.steady_step_seconds
    assert pytest.approx([5.0, 10.0]) == [short.overhead_seconds, long.overhead_seconds]
    assert pytest.approx(0.9 / 139) == short.lost_step_seconds


def test_a_full_run_is_overhead_and_steady_steps():
    segment = Segment(20, 0.1, 12.0, late_seconds=5.0)

    assert Segment(20, 0.1, 12.0, 0.0, 0.0) == Segment(20, 0.1, 12.0)
    assert pytest.approx([112.0, 107.0]) == [
        segment.full_run_seconds(1000, calm=calm) for calm in (False, True)
    ]


@pytest.mark.parametrize(
    "steps", [[0.1] * MIN_STEPS, [1e-9] * 50, [0.1] * 35 + [9.0] * 125], ids=["n", "clock", "calm"]
)
def test_the_least_that_has_a_steady_state(steps):
    assert pytest.approx(steps[0]) == steady(steps).steady_step_seconds


@pytest.mark.parametrize(
    "steps",
    [
        [0.1] * (MIN_STEPS - 1),
        [0.1] * 50 + [-1.0],
        [0.1] * 50 + [math.nan],
        [0.1] * 50 + [math.inf],
        [0.0] * 50,
        [],
        [0.1] * 34 + [9.0] * 126,
    ],
    ids=["short", "negative", "nan", "infinite", "no time", "empty", "only spikes"],
)
def test_a_segment_without_a_steady_state_has_none(steps):
    assert analyse(steps, compile_seconds=0.0, baseline_median=0.1, full_run_steps=100) is None


@given(seed=st.integers(0, 1000), power=st.integers(-10, 10))
def test_another_unit_of_time_changes_seconds_only(seed, power):
    factor, steps = 2.0**power, [3.0, *noisy(99, seed=seed, noise=0.05)]
    segment = steady(steps)
    scaled = analyse(
        [x * factor for x in steps],
        compile_seconds=0.0,
        baseline_median=0.1 * factor,
        full_run_steps=1000,
    )

    assert scaled == Segment(
        warm_up_steps=segment.warm_up_steps,
        steady_step_seconds=segment.steady_step_seconds * factor,
        overhead_seconds=segment.overhead_seconds * factor,
        lost_step_seconds=segment.lost_step_seconds * factor,
    )


@given(seed=st.integers(0, 1000), noise=st.floats(0, 0.1))
def test_the_steady_step_lies_among_the_steps(seed, noise):
    steps = noisy(160, seed=seed, noise=noise)

    assert min(steps) <= steady(steps).steady_step_seconds * (1 + 1e-12)
    assert steady(steps).steady_step_seconds <= max(steps) * (1 + 1e-12)
