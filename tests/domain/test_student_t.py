"""Student's t against scipy, the outside oracle."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from compilegate.domain.judging import student

degrees = st.one_of(st.integers(1, 500), st.floats(1, 500))


@given(t=st.floats(-50, 50), df=degrees)
def test_the_tail_agrees_with_scipy(t, df):
    # scipy itself is off by 2e-9 for t near zero and one degree of freedom.
    assert pytest.approx(stats.t.sf(t, df), rel=1e-10, abs=5e-9) == student.upper_tail(t, df)


@pytest.mark.parametrize(("t", "df"), [(12.0, 3), (40.0, 10), (5.0, 200), (3.0, 1.5), (-2.0, 4)])
def test_far_tails_keep_their_digits(t, df):
    assert pytest.approx(stats.t.sf(t, df), rel=1e-10, abs=0) == student.upper_tail(t, df)


@given(p=st.floats(1e-6, 1 - 1e-6), df=degrees)
def test_the_quantile_agrees_with_scipy(p, df):
    assert pytest.approx(stats.t.ppf(p, df), rel=1e-9, abs=1e-9) == student.quantile(p, df)


@pytest.mark.parametrize(("t", "expected"), [(math.inf, 0.0), (-math.inf, 1.0), (0.0, 0.5)])
def test_the_ends_and_the_middle_are_exact(t, expected):
    assert expected == student.upper_tail(t, 3)


def test_the_incomplete_beta_function_is_exact_at_both_ends():
    ends = [student.incomplete_beta(2, 3, x, 1 - x) for x in (0.0, 1.0, -0.1, 1.1)]

    assert [0.0, 1.0, 0.0, 1.0] == ends


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [(2, 50, 1e-6), (0.5, 200, 1e-8), (50, 2, 0.25), (300, 0.5, 0.5), (3, 4, 0.3), (40, 3, 0.999)],
)
def test_the_incomplete_beta_function_keeps_its_digits_by_scipy(a, b, x):
    expected = special.betainc(a, b, x)

    assert pytest.approx(expected, rel=1e-10, abs=0) == student.incomplete_beta(a, b, x, 1 - x)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_an_impossible_probability_is_an_error(p):
    with pytest.raises(ValueError, match=f"0 < p < 1, got {p}"):
        student.quantile(p, 5)


def test_the_middle_of_the_distribution_is_zero():
    assert pytest.approx(0.0, abs=1e-13) == student.quantile(0.5, 3)


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """The calls of that function, as they are made."""
    calls, made = list[Any](), getattr(student, name)
    monkeypatch.setattr(student, name, lambda *args: calls.append(args) or made(*args))
    return calls


# A quantile in (0, 1] is halved 47 times, for 2^-47 is below 1e-14; one in (2, 4], beside 3.08
# and with three tries to get there, 46 times, for 2^-45 is below 3.08e-14.
@pytest.mark.parametrize(("p", "tries"), [(0.5, 1 + 47), (0.9, 3 + 46)])
def test_a_quantile_costs_as_many_tries_as_it_has_digits(monkeypatch, p, tries):
    calls = counted(monkeypatch, "upper_tail")
    student.quantile.__wrapped__(p, 1)

    assert tries == len(calls)


@pytest.mark.parametrize(("t", "df"), [(0.1, 1), (2.0, 5), (1.0, 500)])
def test_a_tail_takes_few_terms_of_its_fraction(monkeypatch, t, df):
    calls = counted(monkeypatch, "_away_from_zero")
    student.upper_tail(t, df)

    assert len(calls) < 50


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 2.0, 4.0, 9.0]])
def test_an_interval_is_the_means_by_scipy(values):
    mean, df = sum(values) / len(values), len(values) - 1
    error = stats.sem(values)

    assert pytest.approx(stats.t.isf(0.1, df) * error) == student.half_width(values, 0.1)
    expected = stats.t.interval(0.95, df, mean, error)
    assert pytest.approx(tuple(expected)) == student.interval_of(values)
    assert student.interval_of(values[:1]) is None


@pytest.mark.parametrize(("t", "df"), [(1.0, 0), (1.0, -1), (math.nan, 5)])
def test_no_degrees_of_freedom_or_no_number_is_an_error(t, df):
    with pytest.raises(ValueError, match="df > 0"):
        student.upper_tail(t, df)
