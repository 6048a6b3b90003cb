"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from compilegate.report import formats


@pytest.mark.parametrize(
    ("value", "expected"),
    [(33700.4, "$33,700"), (412, "$412.00"), (0.2134, "$0.21"), (0.00088, "$0.00088"),
     (-3.228, f"{formats.MINUS}$3.23"), (0, "$0.00")],
)  # fmt: skip
def test_money_keeps_small_amounts_readable(value, expected):
    assert formats.money(value) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0000421, "42.1 µs"), (0.0416, "41.6 ms"), (2.4, "2.4 s"), (600, "10 min"), (21600, "6 h")],
)
def test_durations_come_in_the_unit_that_suits_them(seconds, expected):
    assert formats.duration(seconds) == expected


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "3", True])
def test_what_is_not_a_finite_number_is_a_dash_and_never_zero(value):
    assert formats.shown(value, formats.money) == formats.UNKNOWN


@pytest.mark.parametrize("value", [None, [1.0], [1.0, None], [math.nan, 2.0], "ab", 3])
def test_what_is_not_an_interval_is_a_dash(value):
    assert formats.interval(value, formats.ratio) == formats.UNKNOWN


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1234567.0, "1,234,567"),
        (0.000123456, "0.000123"),
        (-0.05, f"{formats.MINUS}0.05"),
        (100, "100"),
        (0, "0"),
    ],
)
def test_significant_digits_without_exponents(value, expected):
    assert formats.significant(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(1.62, "1.620"), (0.7, "0.7000"), (123456.0, "123,456"), (0, "0")]
)
def test_neighbours_in_a_table_have_the_same_number_of_digits(value, expected):
    assert formats.fixed(value) == expected


def test_a_subject_keeps_its_meaning_in_ascii():
    words = f"{formats.MINUS}3\n{formats.UNKNOWN}\tµs über\x00"

    assert formats.ascii_only(words) == "-3 - us ber"
