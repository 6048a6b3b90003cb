"""Numbers as people read them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import formats
from compilegate.domain.arithmetic import ratio

MINUS = formats.MINUS


@pytest.mark.parametrize(
    ("as_text", "examples"),
    [
        (formats.money, {
            33700.4: "$33,700", 412: "$412.00", 0.2134: "$0.21", 0.00088: "$0.00088",
            0.0329: "$0.033", 0.05: "$0.05", 0.0999: "$0.10", 0.01: "$0.01",
            -3.228: f"{MINUS}$3.23", 0: "$0.00", 0.5: "$0.50", -0.5: f"{MINUS}$0.50",
            1000: "$1,000",
        }),
        (formats.estimated_money, {
            412.4: "$412", 9.5: "$9.50", 0.003: "$0.003", 1234.5: "$1,234",
        }),
        (formats.money_tick, {0.5: "$0.5", -20: f"{MINUS}$20", 1234.5: "$1,234"}),
        (formats.percent, {0.95: "95%", 0.125: "12.5%", -0.03: f"{MINUS}3%", 0: "0%"}),
        (formats.less_or_more, {
            0.746: "25% less", 1: "0% less", 1.3: "30% more", 1.996: "100% more",
            2: "2 times as much", 19.66: "20 times as much",
        }),
        (formats.days, {0.062: "89.3 min", 0.5: "12 h", 1: "1 day", 2.14: "2.1 days"}),
        (formats.elapsed, {245: "4 min 05 s", 59.4: "59 s"}),
        (formats.duration, {
            0.0000421: "42.1 µs", 0.0416: "41.6 ms", 2.4: "2.4 s", 600: "10 min", 21600: "6 h",
        }),
        (formats.significant, {
            1234567.0: "1,234,567", 0.000123456: "0.000123", -0.05: f"{MINUS}0.05", 100: "100",
            0: "0",
        }),
        # Neighbours in a table have the same number of digits.
        (formats.fixed, {1.62: "1.620", 0.7: "0.7000", 123456.0: "123,456", 0: "0"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_a_number_as_text(as_text, examples):
    assert {value: as_text(value) for value in examples} == examples


@given(st.floats(-1e9, 1e9).filter(lambda usd: usd == 0 or abs(usd) > 1e-6))
def test_money_has_one_sign_one_currency_and_two_decimals_or_whole_dollars(value):
    text = formats.money(value)

    assert re.fullmatch(rf"{formats.MINUS}?\$[0-9,]+(\.[0-9]+)?", text)
    assert text.startswith(formats.MINUS) == (value < 0)
    if formats.TEN_CENTS <= abs(value) < formats.WHOLE_DOLLARS - 0.005:
        assert re.search(r"\.\d\d$", text)
    if 1e-6 < abs(value) < formats.WHOLE_DOLLARS:
        # So that what a run costs, less and more, differs by what it saves.
        assert float(text.lstrip(f"{formats.MINUS}$")) == pytest.approx(abs(value), rel=0.051)


@given(st.floats(1e-6, 1e12), st.integers(1, 6))
def test_significant_digits_round_to_the_nearest(value, digits):
    text = formats.significant(value, digits).replace(",", "")

    assert float(text) == pytest.approx(value, rel=0.5 * 10 ** (1 - digits))


@given(st.floats(1e-9, 1e7), st.floats(1e-9, 1e7))
def test_a_longer_time_never_reads_as_a_shorter_one(one, other):
    units = {"µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}

    def seconds(text):
        size, unit = text.split()
        return float(size.replace(",", "")) * units[unit]

    short, long = sorted((one, other))
    assert seconds(formats.duration(short)) <= seconds(formats.duration(long)) * (1 + 1e-9)


@pytest.mark.parametrize("value", [None, [1.0], [1.0, None], [math.nan, 2.0], "ab", 3])
def test_what_is_not_an_interval_is_a_dash(value):
    assert formats.interval(value, ratio) == formats.UNKNOWN
