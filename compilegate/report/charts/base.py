"""What every figure shares: the frame around the data, and a chart's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.report.charts.palette import LIGHT

Figure = dict[str, Any]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


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


@dataclass(frozen=True)
class Frame:
    """Axes of one figure."""

    x: Mapping[str, Any]
    y: Mapping[str, Any]
    shapes: Sequence[Mapping[str, Any]] = ()
    annotations: Sequence[Mapping[str, Any]] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def figure(data: Sequence[Mapping[str, Any]], frame: Frame) -> Figure:
    """A plotly figure as plain data."""
    return {
        "data": [dict(trace) for trace in data],
        "layout": {
            "autosize": True,
            "font": {"family": FONT, "size": 12.5, "color": LIGHT["text"]},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 56, "r": 18, "t": 36, "b": 46},
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": LIGHT["paper"], "bordercolor": LIGHT["axis"],
                "font": {"color": LIGHT["text"], "size": 12.5},
            },
            "legend": {
                "orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
                "font": {"size": 12}, "bgcolor": "rgba(0,0,0,0)",
            },
            "modebar": {
                "bgcolor": "rgba(0,0,0,0)", "color": LIGHT["axis"], "activecolor": LIGHT["text"],
            },
            "xaxis": axis(frame.x),
            "yaxis": axis(frame.y),
            "shapes": [dict(shape) for shape in frame.shapes],
            "annotations": [dict(note) for note in frame.annotations],
            **frame.extra,
        },
    }  # fmt: skip


def axis(given: Mapping[str, Any]) -> dict[str, Any]:
    """An axis in the house style; ``title`` is a plain string."""
    title = given.get("title")
    rest = {key: value for key, value in given.items() if key != "title"}
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


def label(text: str, colour: str, **where: Any) -> dict[str, Any]:
    """A short text in the plot; ``text`` must come from this package, not from a document."""
    return {"text": text, "showarrow": False, "font": {"size": 11.5, "color": colour}, **where}


def inert(text: str) -> str:
    """Text that plotly shows as it is; plotly reads a subset of HTML in every label."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
