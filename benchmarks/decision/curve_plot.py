"""Chart of the operating characteristic: promotion, and what is left of it, by the true loss.

python -m benchmarks.decision.curve_plot
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from benchmarks.decision.plots import STYLE, WIDTH, plt
from benchmarks.decision.targets import LOSSES, RESULTS, SPREADS

COLOURS = ("#0072B2", "#009E73", "#E69F00", "#D55E00")
MARKERS = ("o", "s", "^", "D")
HEIGHT = 4.2
LEVEL = 5.0  # per cent: the most that may be promoted at the margin

Cells = Sequence[Mapping[str, Any]]


def draw(folder: Path, results: Path = RESULTS) -> Path | None:
    """Write the chart into the folder; None where the curve has not been simulated."""
    cells = json.loads(results.read_text())["cells"]
    lines = [line(cells, spread) for spread in SPREADS]
    if not any(lines):
        print("no chart of the chance of promotion by the true loss", file=sys.stderr)
        return None
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
        promotions(axes, lines)
        place = folder / "decision-by-loss.svg"
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(place, metadata={"Date": None})
        plt.close(figure)
    return place


def line(cells: Cells, spread: float) -> list[tuple[float, Mapping[str, Any]]]:
    """The figures of one spread, by loss."""
    by_loss_and_spread = {
        (cell["portfolio"], cell.get("spread")): cell["figures"]
        for cell in cells
        if cell.get("version") is None
    }
    keys = [(loss, by_loss_and_spread.get((f"loss {loss:g}", spread))) for loss in LOSSES]
    return [(loss, figures) for loss, figures in keys if figures is not None]


def promotions(axes: Axes, lines: Sequence[list[tuple[float, Mapping[str, Any]]]]) -> None:
    """A line for each spread: promoted, and dotted what is still on after the probation."""
    for spread, colour, marker, points in zip(SPREADS, COLOURS, MARKERS, lines, strict=True):
        losses = [loss for loss, _ in points]
        for key, style, name in (("promoted", "-", f"sd {spread:g} margins"), ("kept", ":", None)):
            shares = [figures[key]["percent"] for _, figures in points]
            axes.plot(losses, shares, style, color=colour, marker=marker, markersize=5, label=name)
    axes.axvline(1.0, color="#888888", linewidth=1)
    axes.axhline(LEVEL, color="#888888", linewidth=1, linestyle="--")
    axes.set_title("Chance of promotion by the true loss")
    axes.set_xlabel("true loss, margins (dotted: still on after the probation)")
    axes.set_ylabel("% of workloads")
    axes.set_ylim(0, 102)
    axes.legend(frameon=False)


if __name__ == "__main__":
    draw(Path(__file__).with_name("images"))
