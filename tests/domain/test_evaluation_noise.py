"""The split of a metric's spread, against numpy and against simulated runs of known parts."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.judging.evaluation import (
    Split,
    df_over_chi_squared,
    median_variance,
    tau_squared,
)
from compilegate.domain.judging.outcomes import BOUNDS, Outcomes, read_outcomes
from tests.domain.outcome_builder import SET, packed_bits, packed_losses


def read(document: dict[str, Any]) -> Outcomes:
    outcomes = read_outcomes(document)
    assert outcomes is not None
    return outcomes


@given(st.integers(2, 6), st.integers(2, 40), st.integers(0, 2**32))
def test_of_bits_is_numpys_variance_over_runs(runs, examples, seed):
    right = np.random.default_rng(seed).random((runs, examples)) < 0.7
    expected = right.var(axis=0, ddof=1).mean()

    assert tau_squared([[read(packed_bits(run)) for run in right]]) == pytest.approx(expected)


@given(st.integers(2, 6), st.integers(2, 40), st.integers(0, 2**32))
def test_of_losses_is_numpys_variance_over_runs(runs, examples, seed):
    losses = np.random.default_rng(seed).normal(3, 0.2, (runs, examples))
    expected = losses.astype("<f2").astype(float).var(axis=0, ddof=1).mean()

    assert tau_squared([[read(packed_losses(run)) for run in losses]]) == pytest.approx(expected)


def test_arms_are_pooled_by_their_degrees_of_freedom_and_one_run_has_none():
    rng = np.random.default_rng(1)
    arms = [rng.random((runs, 300)) < 0.8 for runs in (2, 5, 1)]
    expected = sum((len(a) - 1) * a.var(axis=0, ddof=1).mean() for a in arms[:2]) / 5
    packed = [[read(packed_bits(run)) for run in arm] for arm in arms]

    assert tau_squared(packed) == pytest.approx(expected)
    assert tau_squared(packed[2:]) is None
    assert tau_squared([]) is None


def test_equal_runs_have_no_variance():
    losses = read(packed_losses(np.full(100, 2.345)))

    assert tau_squared([[losses, losses, losses]]) == 0


def test_wanted_examples_are_the_inverse_of_the_spread():
    split = Split(sd=0.0047, df=10**6, examples=2000, tau_squared=2000 * 0.0044**2)
    wanted = split.wanted(0.00275)

    assert split.evaluation_sd == pytest.approx(0.0044)
    assert split.training_sd == pytest.approx(0.00165, rel=0.01)
    assert Split(1.0, 10**6, 2, 1.0).training_sd == pytest.approx(1.0)  # of two examples
    assert wanted == pytest.approx(8000, rel=0.02)
    assert split.at(wanted) <= 0.00275 < split.at(wanted - 1)
    assert split.wanted(0.99 * split.training_sd) is None


def test_a_spread_smaller_than_the_evaluations_leaves_nothing_for_training():
    few, many = (Split(0.004, df, 2000, 2000 * 0.0044**2) for df in (4, 10**4))

    assert few.training_sd == many.training_sd == 0
    assert few.at(8000) > 1.5 * many.at(8000)  # which four degrees of freedom cannot show
    assert many.at(8000) == pytest.approx(0.0022, rel=0.01)


@pytest.mark.parametrize("df", [3, 5, 14, 60])
@pytest.mark.parametrize("measured", [0.3, 0.7, 1.0, 2.0, 9.0])
def test_the_median_of_a_variance_that_is_at_least_one_is_scipys(df, measured):
    left = stats.chi2.cdf(df * measured, df)
    exact = df * measured / stats.chi2.ppf(left / 2, df)

    assert median_variance(measured, df, 1.0) == pytest.approx(max(1.0, exact), rel=0.03)


@pytest.mark.parametrize("df", [3, 5, 10, 40])
@pytest.mark.parametrize("chance", [0.1, 0.9])
def test_chi_squared_limits_are_scipys(df, chance):
    z = stats.norm.ppf(chance)

    assert df_over_chi_squared(df, z) == pytest.approx(df / stats.chi2.ppf(chance, df), rel=0.02)


def test_the_range_of_the_training_part_covers_it():
    """2,000 splits of ten runs: the true part lies below the range in 10 %, above in 10 %."""
    rng, training_sd, examples, tau = np.random.default_rng(3), 0.004, 1000, 0.01
    noise = math.sqrt(training_sd**2 + tau / examples)
    sds = noise * np.sqrt(rng.chisquare(9, 2000) / 9)
    ranges = [Split(float(sd), 9, examples, tau).training_range for sd in sds]

    assert np.mean([low > training_sd for low, _ in ranges]) == pytest.approx(0.1, abs=0.03)
    assert np.mean([high < training_sd for _, high in ranges]) == pytest.approx(0.1, abs=0.03)


GOOD = packed_bits(np.arange(20) % 3 > 0)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "words"}, {"kind": None}, {"examples": 1}, {"examples": True}, {"examples": 2.0},
        {"examples": 10**30}, {"examples": 21}, {"examples": 25}, {"examples": -3},
        {"set_sha256": "x"}, {"set_sha256": SET.upper()}, {"set_sha256": None},
        {"mean": math.nan}, {"mean": "0.65"}, {"mean": 0.9}, {"mean": -1.0}, {"mean": True},
        {"data": "!" * 4}, {"data": GOOD["data"] * 2}, {"data": None}, {"data": "b29\u00e9"},
        {"data": base64.b64encode(b"\xff\xff\xff").decode()}, {"per_outcome": 0},
        {"kind": "losses"},
    ],
)  # fmt: skip
def test_what_is_broken_is_absent(change):
    assert read_outcomes(GOOD) is not None
    assert read_outcomes({**GOOD, **change}) is None


@pytest.mark.parametrize("document", [None, [], "outcomes", 3, {}])
def test_what_is_no_document_is_absent(document):
    assert read_outcomes(document) is None


def test_losses_that_are_not_finite_are_absent():
    losses = packed_losses(np.array([1.0, math.inf, 2.0]))

    assert read_outcomes({**losses, "mean": 1.0}) is None


def test_a_subsample_has_the_size_of_the_bound_whatever_the_document_says():
    right = np.random.default_rng(2).random(100_000) < 0.9
    outcomes = read(packed_bits(right))

    assert outcomes.kept == BOUNDS["bits"]
    assert outcomes.bits.bit_count() == int(right[:4096].sum())
    assert read_outcomes({**packed_bits(right), "examples": 4095}) is None
