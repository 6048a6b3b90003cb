"""What a chart consists of: axes and marks in the units of the data, and how an arm looks.

Colours are named by role; the page's style gives each its value on light and on dark paper
(assets/style.css). Arms differ in marker and dash as well as in colour. Text here is plain text.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compilegate.domain.formats import duration, significant

_ROLES = ("baseline", "first", "second", "third", "fourth")
_SYMBOLS = ("circle", "diamond", "square", "triangle", "cross")
_DASHES = ("7 4", "", "9 3 2 3", "2 3", "13 4")
DASHED, DOTTED = "7 4", "2 3"


@dataclass(frozen=True)
class ArmStyle:
    """How one arm looks in every chart; ``dash`` as in SVG's ``stroke-dasharray``."""

    role: str
    symbol: str
    dash: str


def arm_style(index: int) -> ArmStyle:
    """Style of the arm at ``index``; 0 is the baseline, after the fourth they repeat."""
    place = index if index < len(_ROLES) else 1 + (index - 1) % (len(_ROLES) - 1)
    return ArmStyle(_ROLES[place], _SYMBOLS[place], _DASHES[place])


Tick = tuple[float, str]


@dataclass(frozen=True)
class Axis:
    """The part of a scale that is drawn, from ``low`` (left, bottom) to ``high``."""

    title: str
    low: float
    high: float
    ticks: Sequence[Tick] = ()
    grid: bool = False
    logarithmic: bool = False


@dataclass(frozen=True)
class Line:
    """A line; None in ``y`` is a gap. A stepped one keeps each value up to the next ``x``.

    ``name`` puts it into the legend.
    """

    x: Sequence[float]
    y: Sequence[float | None]
    role: str
    width: float = 2.4
    dash: str = ""
    stepped: bool = False
    pale: bool = False
    name: str = ""


@dataclass(frozen=True)
class Area:
    """What lies between two curves, pale."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    role: str
    stepped: bool = False
    name: str = ""


@dataclass(frozen=True)
class Points:
    """Markers; ``words`` say what each is where a pointer rests on it, none for very many."""

    x: Sequence[float]
    y: Sequence[float]
    role: str
    symbol: str
    words: Sequence[str]
    size: float = 8.0
    open: bool = False
    pale: bool = False
    name: str = ""


@dataclass(frozen=True)
class Bar:
    """A horizontal bar around ``y``; ``thick`` in units of the vertical axis."""

    low: float
    high: float
    y: float
    thick: float
    role: str
    words: str
    full: bool = False
    name: str = ""


@dataclass(frozen=True)
class Interval:
    """A horizontal interval with ends."""

    low: float
    high: float
    y: float
    role: str


@dataclass(frozen=True)
class Rule:
    """A line through the whole plot: upright at ``x``, or level at ``y``.

    The name of an upright one stands above the plot, that of a level one in the legend.
    """

    role: str
    x: float | None = None
    y: float | None = None
    dash: str = ""
    name: str = ""


@dataclass(frozen=True)
class Band:
    """A stretch of the horizontal axis, pale; its name stands at the foot where it has room."""

    low: float
    high: float
    role: str
    name: str = ""


@dataclass(frozen=True)
class Label:
    """Text that begins at a place in the plot, ``above`` it by pixels."""

    text: str
    x: float
    y: float
    role: str = "text"
    above: float = 0.0


Mark = Line | Area | Points | Bar | Interval | Rule | Band | Label


@dataclass(frozen=True)
class Figure:
    """Marks, the first below the others; ``height`` of the plot in pixels."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    height: float = 230


@dataclass(frozen=True)
class View:
    """One figure of a chart; a chart with several has a switch named by their labels."""

    label: str
    figure: Figure


@dataclass(frozen=True)
class Chart:
    """A chart with what it shows in words; ``missing`` says why there is none."""

    id: str
    title: str
    finding: str
    note: str = ""
    views: Sequence[View] = ()
    missing: str = ""
    choice: str = ""  # what the switch chooses between
    wide: bool = False


# Axes with round ticks, rows of names, and long series cut short without losing their extremes.

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
    last = high if from_zero and high == 0 > low else high + room * span
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
    """A logarithmic axis with ticks at 1, 2 and 5 of each decade, or closer ones."""
    low, high = math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.15
    decades = range(math.floor(low), math.ceil(high) + 1)
    leads: tuple[int, ...] = (1, 3)
    if high - low < 2:
        leads = (1, 2, 5)
    elif high - low > 4:
        leads = (1,)
    marks = [lead * 10.0**decade for decade in decades for lead in leads]
    inside = [(mark, duration(mark)) for mark in marks if low <= math.log10(mark) <= high]
    if len(inside) < 2:
        inside = round_ticks(10**low, 10**high, TICKS, duration)
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
