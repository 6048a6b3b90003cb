"""A one-sided cumulative sum that watches production runs for a fall (Page 1954).

    S_t = max(0, S_{t-1} + reference - shift/2 - x_t),   alarm when S_t > h s

The threshold h keeps the chance of a false alarm within ``runs`` runs at about ``error``. For
normal x the mean number of runs to a false alarm is (Siegmund 1985, with his correction of
1.166 for the overshoot)

    ARL_0 = (exp(2 k b) - 2 k b - 1) / (2 k^2),   k = shift / (2 s),   b = h + 1.166

and the time to a false alarm is close to exponential, so ARL_0 = runs / -ln(1 - error).
"""

from __future__ import annotations

import math

OVERSHOOT = 1.166


def average_run_length(h: float, k: float) -> float:
    """ARL_0 of threshold ``h`` at allowance ``k``, both in standard deviations."""
    b = h + OVERSHOOT
    return (math.exp(2 * k * b) - 2 * k * b - 1) / (2 * k * k)


def threshold(shift: float, spread: float, *, runs: int, error: float) -> float:
    """h in standard deviations, by bisection; 0 where even h = 0 alarms rarely enough."""
    k = shift / (2 * spread)
    needed = runs / -math.log1p(-error)
    low, high = 0.0, 1.0
    # Beyond 700 the exponential overflows; no alarm that late matters.
    while 2 * k * (high + OVERSHOOT) < 700 and average_run_length(high, k) < needed:
        low, high = high, high * 2
    if 2 * k * (high + OVERSHOOT) >= 700 or average_run_length(0.0, k) >= needed:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if average_run_length(middle, k) < needed else (low, middle)
    return high


def step(total: float, value: float, *, reference: float, shift: float) -> float:
    """S_t from S_{t-1} and one run's ``value``; higher values are better."""
    return max(0.0, total + reference - shift / 2 - value)
