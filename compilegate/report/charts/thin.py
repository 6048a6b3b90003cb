"""Long traces cut to what a screen can show, without losing the spikes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

POINTS = 400
Point = tuple[int, float]


def thin(values: Sequence[float], *, points: int = POINTS) -> list[Point]:
    """(index, value) of at most ``points`` values: the smallest and largest of each stretch.

    A mean would hide a recompilation, and every n-th value would usually miss it.
    """
    if len(values) <= points:
        return list(enumerate(values))
    stretches = points // 2
    kept: set[int] = set()
    for stretch in range(stretches):
        low, high = stretch * len(values) // stretches, (stretch + 1) * len(values) // stretches
        kept.add(min(range(low, high), key=values.__getitem__))
        kept.add(max(range(low, high), key=values.__getitem__))
    return [(index, values[index]) for index in sorted(kept)]


def smooth(values: Sequence[float], *, share: float = 0.05) -> list[float]:
    """A centred running mean over ``share`` of the series, at most 15 points, never padded."""
    half = min(7, int(len(values) * share / 2))
    return [
        statistics.fmean(values[max(0, index - half) : index + half + 1])
        for index in range(len(values))
    ]
