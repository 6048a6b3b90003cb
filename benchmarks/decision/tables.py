"""Markdown tables, and figures with their standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def shown(figure: Mapping[str, Any]) -> str:
    """A share or a mean with its standard error; of none, out of how many; a dash for no figure."""
    value = figure.get("percent", figure.get("mean"))
    if value is None:
        return "-"
    if value == 0 and "percent" in figure:
        return f"0 of {figure['n']:,}"
    digits = 2 if abs(value) < 10 else 1
    return f"{value:.{digits}f} ± {figure['se']:.{digits}f}"
