"""When each gate looks at the data, and how much of the error each look may spend.

The speed gate looks at fixed numbers of blocks, which share its error evenly (Bonferroni). The
quality gate looks at fixed numbers of candidate runs. Look n of n_max spends

    a(n) = c x level x n / n_max

a power-family spending schedule (Lan and DeMets 1983; exponent 1): as little as few runs say.
With c = 1 / sum(n / n_max) the looks add up to ``level`` (Bonferroni), which needs no
assumption on how they depend on each other. The larger constants use that dependence; they
come from a simulation of the test at the margin (benchmarks/decision/calibrate.py): one test
at each look however often the judge is called, one to eight candidates, any history, as few
baseline runs as the rules allow or more. What a metric that moves within the trial spends is in
benchmarks/decision/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping

SPEED_LOOKS = (3, 4, 6)
SCHEDULE = (2, 3, 5, 8, 12, 18, 24, 36, 54, 72, 96)
CALIBRATED: Mapping[int, float] = {
    2: 1.0, 3: 0.86, 5: 0.71, 8: 0.67, 12: 0.60, 18: 0.58, 24: 0.53, 36: 0.51, 54: 0.52, 72: 0.47,
    96: 0.45,
}  # fmt: skip


def speed_level(alpha: float, candidates: int) -> float:
    """The error that one look of the speed gate may spend on one of several candidates."""
    return alpha / (len(SPEED_LOOKS) * candidates)


def speed_look_at(blocks: int) -> int:
    """The last look of the speed gate that so many blocks have reached, 0 before the first."""
    return max((look for look in SPEED_LOOKS if look <= blocks), default=0)


def last_look(most: float) -> int | None:
    """The largest look within ``most`` runs, None below two: a spread needs two."""
    return max((n for n in SCHEDULE if n <= most), default=None)


def looks(n_max: int) -> tuple[int, ...]:
    """The looks of a design that ends at ``n_max``, itself a look."""
    return SCHEDULE[: SCHEDULE.index(n_max) + 1]


def spent(n: int, n_max: int, level: float) -> float:
    """a(n): the error that the look at ``n`` runs may spend."""
    return CALIBRATED[n_max] * level * n / n_max


def look_at(n: int, n_max: int) -> int | None:
    """The last look that ``n`` runs have reached, None before the first."""
    return max((look for look in looks(n_max) if look <= n), default=None)


def next_look(n: int, n_max: int) -> int | None:
    """The look after ``n`` runs, None after the last."""
    return next((look for look in looks(n_max) if look > n), None)
