"""A figure as SVG that needs no script: readable in print and wherever a page is only shown.

Shapes take their colour from the class named after their role (``currentColor``). A label that
would touch another moves up a row; one without room is left out, and its line stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from markupsafe import Markup, escape

from compilegate.domain.outside import visible
from compilegate.report.charts.figure import (
    Area,
    Axis,
    Band,
    Bar,
    Figure,
    Interval,
    Label,
    Line,
    Mark,
    Points,
    Rule,
    Tick,
)

NARROW, WIDE = 420, 940  # widths in pixels; the page scales them to its columns
TEXT = 12.0
# Of a letter of sans-serif text, as a share of its size: that of DejaVu Sans, a wide one.
LETTER = 0.62
LINE, GAP, EDGE = 15.0, 8.0, 8.0
ROWS_ABOVE = 3
TICKS_LEFT = (2, 5, 10, 20, 50, 100)
CAP = 5.0
PALER, PALE, SOLID = "0.13", "0.18", "0.75"


def text_width(text: str) -> float:
    """About how wide a text is drawn, in pixels; rather too much."""
    return LETTER * TEXT * (len(text) + 1)


@dataclass(frozen=True)
class _Frame:
    """Where the plot lies in the picture, and which labels stand above it."""

    figure: Figure
    width: float

    @cached_property
    def left(self) -> float:
        widths = [text_width(text) for _, text in self.figure.y.ticks]
        first = self.figure.x.ticks[0][1] if self.figure.x.ticks else ""
        # A tick's text at the very left needs half of its width.
        return max(max(widths, default=-GAP) + GAP, text_width(first) / 2, EDGE)

    @cached_property
    def right(self) -> float:
        last = self.figure.x.ticks[-1][1] if self.figure.x.ticks else ""
        return self.width - max(text_width(last) / 2, EDGE) - 2

    @cached_property
    def above(self) -> Sequence[tuple[Rule, float, int]]:
        """Names of upright rules: the rule, where its text begins, and its row from the plot."""
        placed: list[tuple[Rule, float, int]] = []
        ends = [-math.inf] * ROWS_ABOVE
        rules = [m for m in self.figure.marks if isinstance(m, Rule) and m.x is not None]
        for rule in sorted(rules, key=lambda one: one.x or 0.0):
            wide = min(text_width(rule.name), self.width)
            begin = self.x(rule.x or 0.0) - wide / 2
            begin = max(0.0, min(begin, self.width - wide))
            row = next((row for row, end in enumerate(ends) if begin >= end + GAP), None)
            if rule.name and row is not None:
                ends[row] = begin + wide
                placed.append((rule, begin, row))
        return placed

    @cached_property
    def top(self) -> float:
        rows = 1 + max((row for *_, row in self.above), default=-1)
        return LINE * rows + EDGE

    @cached_property
    def bottom(self) -> float:
        return self.top + self.figure.height

    @property
    def height(self) -> float:
        return self.bottom + (LINE + EDGE if self.figure.x.ticks else EDGE)

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * _share(self.figure.x, value)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * _share(self.figure.y, value)


def _share(axis: Axis, value: float) -> float:
    """Where on the axis, from 0 to 1; what lies beyond stops at the edge."""
    low, high = axis.low, axis.high
    if axis.logarithmic:
        low, high, value = math.log(low), math.log(high), math.log(value)
    return min(1.0, max(0.0, (value - low) / (high - low)))


def draw(figure: Figure, words: str, width: float = NARROW) -> Markup:
    """The figure as an ``svg`` element that is ``words`` to who cannot see it."""
    frame = _Frame(figure, width)
    body = "".join(
        (*_axes(frame), *(part for mark in figure.marks for part in _mark(mark, frame)),
         *_names_above(frame))
    )  # fmt: skip
    size = f'width="{_n(width)}" height="{_n(frame.height)}"'
    box = f'viewBox="0 0 {_n(width)} {_n(frame.height)}"'
    named = f'font-size="{TEXT:g}" role="img" aria-label="{_safe(words)}"'
    return Markup(f"<svg {box} {size} {named}>{body}</svg>")  # noqa: S704 - texts are _safe


def legend(figure: Figure) -> list[tuple[Markup, str]]:
    """A sample of each mark that has a name, and the name; upright rules carry theirs."""
    samples: dict[str, str] = {}
    for mark in figure.marks:
        match mark:
            case Line(name=str(name)) | Rule(x=None, name=str(name)) if name:
                width = mark.width if isinstance(mark, Line) else 1.5
                samples.setdefault(name, _stroke("M1 6H25", mark.role, width, mark.dash))
            case Points(name=str(name)) if name:
                fill = "none" if mark.open else "currentColor"
                shape = symbol(mark.symbol, 13, 6, mark.size / 2)
                point = f'<path class="point {mark.role}" fill="{fill}" d="{shape}"/>'
                samples.setdefault(name, point)
            case Area(name=str(name)) | Bar(name=str(name)) if name:
                full = SOLID if isinstance(mark, Bar) and mark.full else PALE
                square = 'x="6" y="0" width="14" height="12" fill="currentColor"'
                sample = f'<rect class="{mark.role}" {square} fill-opacity="{full}"/>'
                samples.setdefault(name, sample)
    box = '<svg viewBox="0 0 26 12" width="26" height="12" aria-hidden="true">'
    return [(Markup(f"{box}{one}</svg>"), name) for name, one in samples.items()]  # noqa: S704


def _axes(frame: _Frame) -> Iterator[str]:
    y_axis, x_axis = frame.figure.y, frame.figure.x
    for at, text in _apart(y_axis.ticks, lambda tick: (-frame.y(tick[0]), LINE)):
        y = frame.y(at)
        if y_axis.grid:
            yield _stroke(f"M{_n(frame.left)} {_n(y)}H{_n(frame.right)}", "grid", 1)
        yield _text(text, frame.left - GAP, y + 4, "muted", "end")
    for at, text in _apart(x_axis.ticks, lambda tick: (frame.x(tick[0]), text_width(tick[1]))):
        x = frame.x(at)
        if x_axis.grid:
            yield _stroke(f"M{_n(x)} {_n(frame.top)}V{_n(frame.bottom)}", "grid", 1)
        yield _text(text, x, frame.bottom + LINE, "muted", "middle")


def _apart(ticks: Sequence[Tick], place: Callable[[Tick], tuple[float, float]]) -> Sequence[Tick]:
    """Every tick, or every so many that their texts do not touch; ``place`` is middle and size."""
    for every in (1, *TICKS_LEFT):
        kept = ticks[::every]
        places = [place(tick) for tick in kept]
        if all(b - a >= (size_a + size_b) / 2 for (a, size_a), (b, size_b) in pairwise(places)):
            return kept
    return ticks[:1]


def _mark(mark: Mark, frame: _Frame) -> Iterator[str]:
    match mark:
        case Line():
            path = _path(_corners(mark.x, mark.y, stepped=mark.stepped), frame)
            yield _stroke(path, mark.role, mark.width, mark.dash, pale=mark.pale)
        case Area():
            there = _corners(mark.x, mark.high, stepped=mark.stepped)
            back = _corners(mark.x, mark.low, stepped=mark.stepped)
            path = _path([*there, *reversed(back)], frame)
            yield f'<path class="{mark.role}" fill="currentColor" opacity="{PALE}" d="{path}Z"/>'
        case Points():
            yield from _points(mark, frame)
        case Bar():
            yield _bar(mark, frame)
        case Interval():
            low, high, y = frame.x(mark.low), frame.x(mark.high), frame.y(mark.y)
            ends = "".join(f"M{_n(x)} {_n(y - CAP)}v{_n(2 * CAP)}" for x in (low, high))
            yield _stroke(f"M{_n(low)} {_n(y)}H{_n(high)}{ends}", mark.role, 2)
        case Rule(x=None):
            level = f"M{_n(frame.left)} {_n(frame.y(mark.y or 0.0))}H{_n(frame.right)}"
            yield _stroke(level, mark.role, 1.5, mark.dash)
        case Rule():
            upright = f"M{_n(frame.x(mark.x or 0.0))} {_n(frame.top)}V{_n(frame.bottom)}"
            yield _stroke(upright, mark.role, 1.5, mark.dash)
        case Band():
            yield from _band(mark, frame)
        case Label():
            x, y = frame.x(mark.x), frame.y(mark.y) - mark.above
            yield _text(_fitting(mark.text, frame.width - x), x, y, mark.role)


def _points(mark: Points, frame: _Frame) -> Iterator[str]:
    fill = "none" if mark.open else "currentColor"
    yield f'<g class="{mark.role}" fill="{fill}"' + (' opacity="0.6">' if mark.pale else ">")
    places = zip(mark.x, mark.y, strict=True)
    shapes = [symbol(mark.symbol, frame.x(x), frame.y(y), mark.size / 2) for x, y in places]
    if mark.words:
        for shape, words in zip(shapes, mark.words, strict=True):
            yield f'<path class="point" d="{shape}"><title>{_safe(words)}</title></path>'
    else:
        yield f'<path class="point" d="{"".join(shapes)}"/>'
    yield "</g>"


def symbol(name: str, x: float, y: float, r: float) -> str:
    """The path of a marker around a place; each covers about the same area."""
    match name:
        case "diamond":
            r *= 1.25
            return f"M{_n(x)} {_n(y - r)}l{_n(r)} {_n(r)}l{_n(-r)} {_n(r)}l{_n(-r)} {_n(-r)}z"
        case "square":
            r *= 0.9
            return f"M{_n(x - r)} {_n(y - r)}h{_n(2 * r)}v{_n(2 * r)}h{_n(-2 * r)}z"
        case "triangle":
            r *= 1.2
            return f"M{_n(x)} {_n(y - r)}l{_n(r)} {_n(1.7 * r)}h{_n(-2 * r)}z"
        case "cross":
            a, b = r * 0.4, r * 1.1
            arms = f"h{_n(2 * a)}v{_n(b - a)}h{_n(b - a)}v{_n(2 * a)}h{_n(a - b)}v{_n(b - a)}"
            back = f"h{_n(-2 * a)}v{_n(a - b)}h{_n(a - b)}v{_n(-2 * a)}h{_n(b - a)}z"
            return f"M{_n(x - a)} {_n(y - b)}{arms}{back}"
        case _:
            arc = f"a{_n(r)} {_n(r)} 0 1 0"
            return f"M{_n(x - r)} {_n(y)}{arc} {_n(2 * r)} 0{arc} {_n(-2 * r)} 0z"


def _bar(mark: Bar, frame: _Frame) -> str:
    low, high = sorted((frame.x(mark.low), frame.x(mark.high)))
    ends = sorted((frame.y(mark.y - mark.thick / 2), frame.y(mark.y + mark.thick / 2)))
    size = f'width="{_n(high - low)}" height="{_n(ends[1] - ends[0])}"'
    return (
        f'<rect class="{mark.role}" x="{_n(low)}" y="{_n(ends[0])}" {size} rx="2" '
        f'fill="currentColor" fill-opacity="{SOLID if mark.full else PALE}">'
        f"<title>{_safe(mark.words)}</title></rect>"
    )


def _band(mark: Band, frame: _Frame) -> Iterator[str]:
    low, high = frame.x(mark.low), frame.x(mark.high)
    yield (
        f'<rect class="{mark.role}" x="{_n(low)}" y="{_n(frame.top)}" width="{_n(high - low)}" '
        f'height="{_n(frame.figure.height)}" fill="currentColor" opacity="{PALER}"/>'
    )
    if mark.name and text_width(mark.name) + GAP <= high - low:
        yield _text(mark.name, low + EDGE, frame.bottom - EDGE, "muted")


def _names_above(frame: _Frame) -> Iterator[str]:
    for rule, begin, row in frame.above:
        name = _fitting(rule.name, frame.width - begin)
        middle, y = begin + text_width(name) / 2, frame.top - EDGE - LINE * row
        yield _text(name, middle, y, rule.role, "middle")


def _fitting(text: str, room: float) -> str:
    """The text, cut where it would leave the picture."""
    most = int(room / (LETTER * TEXT) + 0.01) - 1  # room that was made for it is enough
    return text if len(text) <= most else f"{text[: max(most - 1, 0)]}…"


def _corners(
    x: Sequence[float], y: Sequence[float | None], *, stepped: bool
) -> list[tuple[float, float | None]]:
    """The points of a line; a stepped one is level up to the next ``x``."""
    points = list(zip(x, y, strict=True))
    if not stepped:
        return points
    corners = points[:1]
    for (_, before), (at, value) in pairwise(points):
        if before != value:
            corners += [(at, before), (at, value)]
    return [*corners, points[-1]] if points else []


def _path(points: Sequence[tuple[float, float | None]], frame: _Frame) -> str:
    """A path in pixels, broken at gaps; points on the same pixel are drawn once."""
    parts: list[str] = []
    command, last = "M", ""
    for x, y in points:
        if y is None or not math.isfinite(y):
            command, last = "M", ""
            continue
        place = f"{_n(frame.x(x))} {_n(frame.y(y))}"
        if place != last:
            parts.append(command + place)
        command, last = "L", place
    return "".join(parts)


def _stroke(path: str, role: str, width: float, dash: str = "", *, pale: bool = False) -> str:
    more = f' stroke-dasharray="{dash}"' if dash else ""
    more += ' opacity="0.3"' if pale else ""
    line = f'fill="none" stroke="currentColor" stroke-width="{_n(width)}"'
    return f'<path class="{role}" {line} stroke-linejoin="round"{more} d="{path}"/>'


def _text(text: str, x: float, y: float, role: str, anchor: str = "start") -> str:
    more = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return (
        f'<text class="{role}" fill="currentColor" x="{_n(x)}" y="{_n(y)}"{more}>'
        f"{_safe(text)}</text>"
    )


def _safe(text: str) -> str:
    return str(escape(visible(text)))


def _n(value: float) -> str:
    """A number of pixels, as short as it can be."""
    return f"{value:.1f}".removesuffix(".0")
