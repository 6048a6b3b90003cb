"""Student's t distribution in standard-library Python.

The tail is the regularised incomplete beta function, P(T > t) = I_x(df/2, 1/2) / 2 with
x = df / (df + t^2) (Abramowitz and Stegun 1964, eq. 26.7.1), evaluated by the continued
fraction 26.5.8 with the modified Lentz method (Thompson and Barnett 1986). scipy is the
oracle in the tests; importing it would cost a Lambda most of a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from compilegate.domain.arithmetic import deviation, mean
from compilegate.domain.decision import Interval

_TINY = 1e-300
_PRECISION = 1e-16
_MAX_TERMS = 1000


def upper_tail(t: float, df: float) -> float:
    """P(T > t) for ``df`` > 0 degrees of freedom."""
    if df <= 0 or math.isnan(t):
        raise ValueError(f"Student's t needs df > 0 and a number, got df={df}, t={t}")
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    half = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))
    return half if t >= 0 else 1.0 - half


@lru_cache(maxsize=4096)
def quantile(p: float, df: float) -> float:
    """The value t with P(T <= t) = p, by bisection; 0 < p < 1."""
    if not 0 < p < 1:
        raise ValueError(f"a quantile needs 0 < p < 1, got {p}")
    if p < 0.5:
        return -quantile(1 - p, df)
    low, high = 0.0, 1.0
    while upper_tail(high, df) > 1 - p:
        low, high = high, high * 2
    while high - low > 1e-14 * max(1.0, high):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if upper_tail(middle, df) > 1 - p else (low, middle)
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float, complement: float) -> float:
    """I_x(a, b); ``complement`` is 1 - x, passed so that it keeps its digits near x = 1."""
    if x <= 0 or complement <= 0:
        return 0.0 if x <= 0 else 1.0
    log_front = (
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log(complement)
    )
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _continued_fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _continued_fraction(b, a, complement) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


# Of every two-sided interval that is shown.
CONFIDENCE = 0.95


def half_width(values: Sequence[float], level: float) -> float:
    """t s / sqrt(n) of two or more values: one side of their mean's interval, error ``level``."""
    n = len(values)
    return quantile(1 - level, n - 1) * deviation(values) / math.sqrt(n)


def interval_of(values: Sequence[float]) -> Interval | None:
    """Of their mean, two-sided at CONFIDENCE; None below two values."""
    if len(values) < 2:
        return None
    centre, half = mean(values), half_width(values, (1 - CONFIDENCE) / 2)
    return centre - half, centre + half
