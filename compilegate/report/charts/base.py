"""What every chart shares: colours by role, the frame around the data, and long traces cut short.

Colours are told apart without relying on hue: arms differ in marker and dash as well. The hues are
those of Okabe and Ito (2008), darkened for white and lightened for dark paper. A figure is written
in light colours; the page swaps each exact string for its dark counterpart, so every colour must
occur only once per theme.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# On light and on dark paper.
COLOURS = {
    "text": ("#1c2430", "#e6eaf0"),
    "muted": ("#5b6675", "#9aa5b4"),
    "grid": ("#e4e8ee", "#2a323d"),
    "axis": ("#b9c1cc", "#4a5564"),
    "paper": ("#fffffe", "#151a21"),
    "baseline": ("#6b7684", "#a4aebb"),
    "baseline_fill": ("rgba(107,118,132,0.22)", "rgba(164,174,187,0.22)"),
    "first": ("#0067a8", "#5db4ee"),
    "first_fill": ("rgba(0,103,168,0.16)", "rgba(93,180,238,0.20)"),
    "second": ("#b8500c", "#f0a052"),
    "second_fill": ("rgba(184,80,12,0.16)", "rgba(240,160,82,0.20)"),
    "third": ("#00755c", "#45c9a3"),
    "third_fill": ("rgba(0,117,92,0.16)", "rgba(69,201,163,0.20)"),
    "fourth": ("#96417a", "#dd98c4"),
    "fourth_fill": ("rgba(150,65,122,0.16)", "rgba(221,152,196,0.20)"),
    "limit": ("#a3321f", "#ff8f78"),
    "limit_fill": ("rgba(163,50,31,0.10)", "rgba(255,143,120,0.14)"),
    "goal": ("#2e6b34", "#84cf8b"),
    "shade": ("rgba(230,159,0,0.20)", "rgba(240,180,60,0.20)"),
}
LIGHT = {role: light for role, (light, _) in COLOURS.items()}
DARK = {role: dark for role, (_, dark) in COLOURS.items()}
DARK_OF_LIGHT = dict(COLOURS.values())

_ROLES = ("baseline", "first", "second", "third", "fourth")
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star")
_DASHES = ("dash", "solid", "dashdot", "dot", "longdash")


@dataclass(frozen=True)
class ArmStyle:
    """How one arm looks in every chart."""

    colour: str
    fill: str
    symbol: str
    dash: str


def arm_style(index: int) -> ArmStyle:
    """Style of the arm at ``index``; 0 is the baseline, after the fourth they repeat."""
    place = index if index < len(_ROLES) else 1 + (index - 1) % (len(_ROLES) - 1)
    role = _ROLES[place]
    return ArmStyle(LIGHT[role], LIGHT[f"{role}_fill"], _SYMBOLS[place], _DASHES[place])


Figure = dict[str, Any]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
TRANSPARENT = "rgba(0,0,0,0)"
LEGEND = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "font": {"size": 12},
    "bgcolor": TRANSPARENT,
}


@dataclass(frozen=True)
class View:
    """One figure of a chart; a chart with several has buttons named ``label``."""

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
    choice: str = ""  # what the buttons choose between, for screen readers
    height: int = 330
    wide: bool = False


def figure(
    data: Sequence[Mapping[str, Any]],
    *,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    shapes: Sequence[Mapping[str, Any]] = (),
    annotations: Sequence[Mapping[str, Any]] = (),
    **layout: Any,
) -> Figure:
    """A plotly figure as plain data; ``x`` and ``y`` are the axes."""
    return {
        "data": list(data),
        "layout": {
            "autosize": True,
            "font": {"family": FONT, "size": 12.5, "color": LIGHT["text"]},
            "paper_bgcolor": TRANSPARENT,
            "plot_bgcolor": TRANSPARENT,
            "margin": {"l": 56, "r": 18, "t": 36, "b": 46},
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": LIGHT["paper"], "bordercolor": LIGHT["axis"],
                "font": {"color": LIGHT["text"], "size": 12.5},
            },
            "legend": {**LEGEND, "y": 1.02, "yanchor": "bottom"},
            "modebar": {
                "bgcolor": TRANSPARENT, "color": LIGHT["axis"], "activecolor": LIGHT["text"],
            },
            "xaxis": _axis(**x),
            "yaxis": _axis(**y),
            "shapes": list(shapes),
            "annotations": list(annotations),
            **layout,
        },
    }  # fmt: skip


def _axis(title: str | None = None, **rest: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "font": {"size": 12, "color": LIGHT["muted"]}, "standoff": 8},
        "gridcolor": LIGHT["grid"],
        "linecolor": LIGHT["axis"],
        "tickfont": {"size": 11.5, "color": LIGHT["muted"]},
        "zeroline": False,
        "showline": False,
        "automargin": True,
        "fixedrange": False,
        **rest,
    }


def scatter(mode: str, x: Sequence[Any], y: Sequence[Any], **more: Any) -> dict[str, Any]:
    """A trace of ``lines``, ``markers`` or both."""
    return {"type": "scatter", "mode": mode, "x": list(x), "y": list(y), **more}


def marker(style: ArmStyle, size: int, outline: float = 1) -> dict[str, Any]:
    """An arm's marker, with an outline that keeps neighbours apart."""
    return {
        "symbol": style.symbol, "size": size, "color": style.colour,
        "line": {"color": LIGHT["paper"], "width": outline},
    }  # fmt: skip


def error_bar(
    value: float | None, ends: tuple[float, float] | None, style: ArmStyle, *, thickness: int,
    width: int,
) -> dict[str, Any]:  # fmt: skip
    """The interval around a value, invisible where there is none."""
    if value is None or ends is None:
        return {"visible": False}
    return {
        "type": "data", "symmetric": False, "array": [ends[1] - value],
        "arrayminus": [value - ends[0]], "color": style.colour, "thickness": thickness,
        "width": width,
    }  # fmt: skip


def line_across(y: float, colour: str, dash: str = "solid", width: float = 1.2) -> dict[str, Any]:
    """A horizontal line through the whole plot."""
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": y, "y1": y,
        "line": {"color": colour, "dash": dash, "width": width}, "layer": "between",
    }  # fmt: skip


def line_up(x: float, colour: str, dash: str = "solid", width: float = 1.2) -> dict[str, Any]:
    """A vertical line through the whole plot."""
    return {
        "type": "line", "yref": "paper", "y0": 0, "y1": 1, "xref": "x", "x0": x, "x1": x,
        "line": {"color": colour, "dash": dash, "width": width}, "layer": "between",
    }  # fmt: skip


def band_across(y0: float, y1: float, fill: str) -> dict[str, Any]:
    """A horizontal band behind the data."""
    return {
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": y0, "y1": y1,
        "fillcolor": fill, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip


def band_up(x0: float, x1: float, fill: str) -> dict[str, Any]:
    """A vertical band behind the data."""
    return {
        "type": "rect", "yref": "paper", "y0": 0, "y1": 1, "xref": "x", "x0": x0, "x1": x1,
        "fillcolor": fill, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip


def label(text: str, colour: str, **where: Any) -> dict[str, Any]:
    """A short text in the plot; ``text`` must come from this package, not from a document."""
    return {"text": text, "showarrow": False, "font": {"size": 11.5, "color": colour}, **where}


def inert(text: str) -> str:
    """Text that plotly shows as it is; plotly reads a subset of HTML in every label."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


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
