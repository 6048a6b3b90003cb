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

from benchmarks.decision.play import MODES
from benchmarks.decision.study import EDGE_BOUND, LATER, RESULTS

IMAGES = Path(__file__).with_name("images")
SIZE = (7.0, 3.8)  # inches at 100 dots each: the width of a page's text
COLOURS = dict(zip(MODES, ("#0072B2", "#009E73", "#D55E00"), strict=True))
MARKERS = dict(zip(MODES, "o^s", strict=True))
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
            axes.set_ylim(bottom=0)
            axes.legend(frameon=False)
            places.append(folder / f"decision-{name}.svg")
            figure.savefig(places[-1], metadata={"Date": None})
            plt.close(figure)
    return places


def saving(axes: Axes, cells: Cells) -> None:
    """Net saving of each mode by the runs that are left, beside that of the good arms alone."""
    rows = {mode: cells[f"compilers, {mode}"]["figures"]["by_runs_left"] for mode in MODES}
    ticks = [f"{row['from']} and more" for row in rows["hybrid"]]
    places = range(len(ticks))
    ceiling = [row["ceiling"]["percent"] for row in rows["hybrid"]]
    axes.plot(places, ceiling, "--", color="#555555", label="every good arm, from the first run")
    for mode, own in rows.items():
        values, errors = ([row["saved"][key] for row in own] for key in ("percent", "se"))
        axes.errorbar(places, values, errors, color=COLOURS[mode], marker=MARKERS[mode],
                      capsize=2, label=mode)  # fmt: skip
    axes.set_xticks(places, ticks)
    axes.set_xlabel("production runs that are left when the trial begins")
    axes.set_title("Net saving, % of an oracle's")


def later(axes: Axes, cells: Cells) -> None:
    """Bad promotions by the run with which the loss of the margin begins."""
    names = ["edge, hybrid", *(f"edge, {name}" for name in LATER)]
    runs = [1, *(int(name.removeprefix("from ")) for name in LATER)]
    for key, words, mode in (("bad_promoted", "promoted", "hybrid"),
                             ("bad_kept", "still on after the probation", "canary")):  # fmt: skip
        values, errors = ([cells[name]["figures"][key][part] for name in names]
                          for part in ("percent", "se"))  # fmt: skip
        axes.errorbar(runs, values, errors, color=COLOURS[mode], marker=MARKERS[mode],
                      capsize=2, label=words)  # fmt: skip
    axes.axhline(EDGE_BOUND, color="#888888", linestyle="--", linewidth=1)
    axes.set_xlabel("the candidate's run with which its loss of the margin begins")
    axes.set_title("Candidates that lose the margin, % of workloads")


if __name__ == "__main__":
    draw_all({cell["name"]: cell for cell in json.loads(RESULTS.read_text())["cells"]})
