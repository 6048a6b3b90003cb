"""The picture of the page: what each rule lets through, finds and takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

from benchmarks.decision.plots import STYLE
from benchmarks.referee.page import LEVEL, OURS, by_rule, margins, order, pooled
from benchmarks.referee.played import Results, kept_results

PICTURE = Path(__file__).with_name("referee.svg")
SIZE = (9.6, 5.2)
TICKS = (2, 5, 10, 20, 50, 100, 200)
# Okabe and Ito's colours, each with a shape of its own.
MARKS = (("o", "#0072B2"), ("s", "#D55E00"), ("^", "#009E73"), ("D", "#CC79A7"))


def draw(found: Results, place: Path = PICTURE) -> None:
    """Write the picture: a row for every rule, a mark for every margin."""
    names = order(found)[::-1]
    bad, good = (by_rule(found, loses=loses) for loses in (True, False))
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 3, figsize=SIZE, layout="constrained", sharey=True)
        for number, margin in enumerate(margins(found)):
            shape, colour = MARKS[number % len(MARKS)]
            rows = [row + 0.15 * (1.5 - number) for row in range(len(names))]
            marks: Any = {"fmt": shape, "color": colour, "markersize": 5, "capsize": 2}
            for panel, cells in zip(panels, (bad, good), strict=False):
                figures = [pooled(cells[name][number]) for name in names]
                values, errors = ([one[key] for one in figures] for key in ("percent", "se"))
                panel.errorbar(values, rows, xerr=errors, label=f"{margin:g} sd", **marks)
            runs = [
                sum(good[name][number][key]["mean"] for key in ("candidate_runs", "baseline_runs"))
                for name in names
            ]
            panels[2].plot(runs, rows, shape, color=colour, markersize=5)
        for panel, title in zip(
            panels,
            ("Wrong promotes, %", "Good found, %", "Runs of both arms"),
            strict=True,
        ):
            panel.set_title(title)
            panel.grid(axis="y", color="#eeeeee")
        panels[0].axvline(100 * LEVEL, color="#888888", linestyle="--", linewidth=1)
        panels[0].set_yticks(range(len(names)), names)
        panels[0].get_yticklabels()[names.index(OURS)].set_fontweight("bold")
        panels[2].set_xscale("log")
        panels[2].set_xticks(TICKS, [f"{runs}" for runs in TICKS])
        panels[2].minorticks_off()
        panels[0].legend(title="margin", frameon=False, loc="upper right")
        figure.savefig(place, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    draw(kept_results())
