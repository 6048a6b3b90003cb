"""Axes with round ticks, rows of names, and long series cut short without losing their extremes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from compilegate.domain.formats import duration, significant
from compilegate.report.charts.figure import Axis, Label, Tick

ROW_PIXELS = 58  # a name, and its marks below it
NAME_ABOVE = 14
TICKS = 5


def axis(
    title: str,
    values: Iterable[float],
    *,
    show: Callable[[float], str] = significant,
    room: float = 0.06,
    from_zero: bool = False,
    grid: bool = False,
) -> Axis:
    """An axis over ``values`` with ``room`` on both sides as a share of their range."""
    seen = [*values, *([0.0] if from_zero else [])] or [0.0]
    low, high = min(seen), max(seen)
    span = (high - low) or abs(high) or 1.0
    first = low if from_zero and low == 0 else low - room * span
    last = high if from_zero and high == 0 else high + room * span
    return Axis(title, first, last, round_ticks(first, last, TICKS, show), grid)


def round_ticks(low: float, high: float, most: int, show: Callable[[float], str]) -> list[Tick]:
    """At most about ``most`` ticks at multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    digits = 2 + max(0, math.ceil(math.log10(max(abs(low), abs(high), step) / step)))
    exact = [round(place * step, 12 - math.floor(math.log10(step))) for place in places]
    texts = [show(value) for value in exact]
    if len(set(texts)) < len(texts):  # too fine for the format: as many digits as the step needs
        texts = [significant(value, digits) for value in exact]
    return list(zip(exact, texts, strict=True))


def seconds_axis(title: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis with ticks at 1, 2 and 5 of each decade, in the unit that suits them."""
    low, high = math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.15
    decades = range(math.floor(low), math.ceil(high) + 1)
    leads = (1, 2, 5) if high - low < 2 else (1,) if high - low > 4 else (1, 3)
    marks = [lead * 10.0**decade for decade in decades for lead in leads]
    inside = [(mark, duration(mark)) for mark in marks if low <= math.log10(mark) <= high]
    return Axis(title, 10**low, 10**high, inside, grid=True, logarithmic=True)


def rows_axis(count: int) -> Axis:
    """An axis for ``count`` rows, the first on top; a row's marks are at its number from 0."""
    return Axis("", count - 0.45, -0.55)


def row_names(names: Sequence[str], at: float) -> list[Label]:
    """The name of each row above its marks, beginning at ``at`` of the horizontal axis."""
    return [Label(name, at, row, above=NAME_ABOVE) for row, name in enumerate(names)]


# Of all series of a chart together, so that many of them do not make a heavy page. More than MOST
# of one series would lie on the same pixels, fewer than FEWEST would hide its shape.
ALL_POINTS, MOST, FEWEST = 4000, 240, 24
Point = tuple[int, float]


def points_each(series: int) -> int:
    """How many points each of so many series may have."""
    return min(MOST, max(FEWEST, ALL_POINTS // max(series, 1)))


def thin(values: Sequence[float], *, points: int) -> list[Point]:
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


def smooth(values: Sequence[float]) -> list[float]:
    """A centred running mean over a twentieth of the series, at most 15 points, never padded."""
    half = min(7, len(values) // 40)
    return [
        statistics.fmean(values[max(0, index - half) : index + half + 1])
        for index in range(len(values))
    ]
