"""Colours by role, light and dark, told apart without relying on hue.

Arms differ in marker and dash as well. The hues are those of Okabe and Ito (2008), darkened
for white and lightened for dark paper. A figure is written in light colours; the page swaps
each exact string for its dark counterpart, so every colour must occur only once per theme.
"""

from __future__ import annotations

from dataclasses import dataclass

LIGHT = {
    "text": "#1c2430",
    "muted": "#5b6675",
    "grid": "#e4e8ee",
    "axis": "#b9c1cc",
    "paper": "#fffffe",
    "baseline": "#6b7684",
    "baseline_fill": "rgba(107,118,132,0.22)",
    "first": "#0067a8",
    "first_fill": "rgba(0,103,168,0.16)",
    "second": "#b8500c",
    "second_fill": "rgba(184,80,12,0.16)",
    "third": "#00755c",
    "third_fill": "rgba(0,117,92,0.16)",
    "fourth": "#96417a",
    "fourth_fill": "rgba(150,65,122,0.16)",
    "limit": "#a3321f",
    "limit_fill": "rgba(163,50,31,0.10)",
    "goal": "#2e6b34",
    "shade": "rgba(230,159,0,0.20)",
}
DARK = {
    "text": "#e6eaf0",
    "muted": "#9aa5b4",
    "grid": "#2a323d",
    "axis": "#4a5564",
    "paper": "#151a21",
    "baseline": "#a4aebb",
    "baseline_fill": "rgba(164,174,187,0.22)",
    "first": "#5db4ee",
    "first_fill": "rgba(93,180,238,0.20)",
    "second": "#f0a052",
    "second_fill": "rgba(240,160,82,0.20)",
    "third": "#45c9a3",
    "third_fill": "rgba(69,201,163,0.20)",
    "fourth": "#dd98c4",
    "fourth_fill": "rgba(221,152,196,0.20)",
    "limit": "#ff8f78",
    "limit_fill": "rgba(255,143,120,0.14)",
    "goal": "#84cf8b",
    "shade": "rgba(240,180,60,0.20)",
}
DARK_OF_LIGHT = {LIGHT[role]: DARK[role] for role in LIGHT}

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
