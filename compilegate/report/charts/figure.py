"""What a chart consists of: axes and marks in the units of the data, and how an arm looks.

Colours are named by role; the page's style gives each its value on light and on dark paper
(assets/style.css). Arms differ in marker and dash as well as in colour. Text here is plain text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
