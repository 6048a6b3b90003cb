"""Charts of what no target reaches: saving by the runs that are left, losses that begin late.

    python -m benchmarks.decision.plots

Colours are distinct for colour-blind readers (Okabe and Ito 2008), and never the only distinction.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.decision.study import EDGE_BOUND, LATER, RESULTS

IMAGES = Path(__file__).with_name("images")
SIZE = (7.0, 3.8)  # inches at 100 dots each: the width of a page's text
LINES = {
    "hybrid": ("hybrid, canary", "o-", "#0072B2"),
    "hybrid, strict": ("hybrid without the check", "^:", "#009E73"),
    "shadow": ("shadow", "s-", "#D55E00"),
}
STYLE: Any = {
    "svg.hashsalt": "compilegate",  # the same figures give the same file
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.edgecolor": "#888888",
}
Cells = dict[str, dict[str, Any]]


def draw_all(cells: Cells, folder: Path = IMAGES) -> list[Path]:
    """Write the charts into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    places = []
    with plt.rc_context(STYLE):
        for name, chart in (("saving", saving), ("later", later)):
            figure, axes = plt.subplots(figsize=SIZE, layout="constrained")
            chart(axes, cells)
            axes.legend(frameon=False)
            places.append(folder / f"decision-{name}.svg")
            figure.savefig(places[-1], metadata={"Date": None})
            plt.close(figure)
    return places


def saving(axes: Axes, cells: Cells) -> None:
    """Net saving of each mode by the runs that are left, beside that of the good arms alone."""
    rows = {name: cells[f"compilers, {name}"]["figures"]["by_runs_left"] for name in LINES}
    ticks = [f"{row['from']} and more" for row in rows["hybrid"]]
    places = range(len(ticks))
    ceiling = [row["ceiling"]["percent"] for row in rows["hybrid"]]
    axes.plot(places, ceiling, "--", color="#555555", label="every good arm, from the first run")
    for name, (words, style, colour) in LINES.items():
        values, errors = ([row["saved"][key] for row in rows[name]] for key in ("percent", "se"))
        axes.errorbar(places, values, errors, fmt=style, color=colour, capsize=2, label=words)
    axes.axhline(0, color="#888888", linewidth=1)
    axes.set_xticks(places, ticks)
    axes.set_xlabel("production runs that are left when the trial begins")
    axes.set_title("Net saving, % of an oracle's")


def later(axes: Axes, cells: Cells) -> None:
    """Bad promotions by the run with which the loss of the margin begins."""
    names = ["edge, hybrid", *(f"edge, {name}" for name in LATER)]
    runs = [1, *(int(name.removeprefix("from ")) for name in LATER)]
    for key, words, style, colour in (
        ("bad_promoted", "promoted", "o-", "#0072B2"),
        ("bad_kept", "still on after the probation", "s-", "#D55E00"),
    ):
        kept = [cells[name]["figures"][key] for name in names]
        values, errors = ([figure[part] for figure in kept] for part in ("percent", "se"))
        axes.errorbar(runs, values, errors, fmt=style, color=colour, capsize=2, label=words)
    axes.set_ylim(bottom=0)
    axes.axhline(EDGE_BOUND, color="#888888", linestyle="--", linewidth=1)
    axes.set_xlabel("the candidate's run with which its loss of the margin begins")
    axes.set_title("Candidates that lose the margin, % of workloads")


if __name__ == "__main__":
    draw_all({cell["name"]: cell for cell in json.loads(RESULTS.read_text())["cells"]})
