"""Charts of the results as SVG, for the documentation.

    python -m benchmarks.decision.plots [--results FILE] [--output FOLDER]

Colours are distinct for colour-blind readers (Okabe and Ito 2008), and never the only distinction.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from benchmarks.decision.cells import Cell
from benchmarks.decision.rules import RULES

RESULTS = Path(__file__).with_name("results.json")
WIDTH = 7.0  # inches at 100 dots each: the width of a page's text

NAMES = {
    "hybrid": "Compilegate, hybrid",
    "shadow": "Compilegate, shadow",
    "canary": "Compilegate, canary",
    "article": "Article, to the letter",
    "article_one_sided": "Article, one-sided",
    "charitable": "Article, read charitably",
    "textbook": "Textbook, fixed n",
}
PORTFOLIOS = {
    "mixed": "mixed fleet",
    "boundary_quality": "all lose exactly the margin",
    "boundary_speed": "all are 1.0999 times as fast",
}
COLOURS = {
    "hybrid": "#0072B2",
    "shadow": "#56B4E9",
    "canary": "#009E73",
    "article": "#D55E00",
    "article_one_sided": "#E69F00",
    "charitable": "#CC79A7",
    "textbook": "#595959",
}
MARKERS = {"hybrid": "o", "shadow": "s", "canary": "^", "charitable": "D", "textbook": "v"}
STYLE: Any = {
    "svg.hashsalt": "compilegate",  # the same figures give the same file
    "svg.fonttype": "path",
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlepad": 12,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
    "axes.edgecolor": "#888888",
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "figure.facecolor": "white",
}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
Cells = Sequence[dict[str, Any]]


def main() -> None:
    """Draw every chart that the results allow."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decision.plots")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("images"))
    options = parser.parse_args()
    draw_all(json.loads(options.results.read_text())["cells"], options.output)


def draw_all(cells: Cells, folder: Path) -> list[Path]:
    """Write the charts into the folder."""
    charts: dict[str, tuple[Callable[[Axes, Cells], None], float]] = {
        "false-promotes": (false_promotes, 5.6),
        "power": (power, 3.8),
        "gpu-hours": (gpu_hours, 3.2),
        "wrong-reverts": (wrong_reverts, 3.2),
        "delay": (delay, 3.8),
    }
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with plt.rc_context(STYLE):
        for name, (chart, height) in charts.items():
            figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
            try:
                chart(axes, cells)
            except LookupError as error:
                print(f"no chart of {name}: {error}", file=sys.stderr)
                continue
            written.append(folder / f"decision-{name}.svg")
            figure.savefig(written[-1], metadata={"Date": None})
            plt.close(figure)
    return written


def cell_of(cells: Cells, portfolio: str) -> dict[str, Any]:
    """The unstressed cell of two candidates."""
    plain = Cell(portfolio).key
    same = [cell for cell in cells if all(cell[key] == plain[key] for key in plain)]
    if not same:
        raise LookupError(f"the results have no cell {portfolio}")
    return same[0]


def false_promotes(axes: Axes, cells: Cells) -> None:
    """A group of bars for each portfolio."""
    position, ticks, labels = 0.0, [], []
    for portfolio, words in PORTFOLIOS.items():
        cell = cell_of(cells, portfolio)
        axes.text(0, position - 0.85, words, weight="bold", va="center", bbox=PAPER)
        for rule in _rules_of(cell):
            _bar(axes, position, cell["rules"][rule]["false_promotes"], rule)
            ticks.append(position)
            labels.append(NAMES[rule])
            position += 1
        position += 1.2
    axes.set_yticks(ticks, labels)
    axes.axvline(5, color="#999999", linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.text(5.4, position - 1.1, "5 %: what the judge may err", va="center", color="#333333")
    axes.set_ylim(position - 0.5, -1.4)
    _bars(axes, "Bad arms promoted, % of workloads")


def gpu_hours(axes: Axes, cells: Cells) -> None:
    """Dedicated GPU-hours of every rule in the mixed fleet."""
    _ranked(axes, cell_of(cells, "mixed"), "gpu_hours")
    axes.axvline(100, color="#888888", linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    _bars(axes, "GPU-hours of the trial, % of the article's")


def wrong_reverts(axes: Axes, cells: Cells) -> None:
    """Promotions without fault that the watch took back, where every arm is good."""
    _ranked(axes, cell_of(cells, "all_good"), "wrong_reverts")
    _bars(axes, "Faultless promotions taken back, %")


def power(axes: Axes, cells: Cells) -> None:
    """Good arms promoted, by how much the metric varies from seed to seed."""
    cell = cell_of(cells, "all_good")
    ends = []
    for rule in [rule for rule in MARKERS if rule in cell["rules"]]:
        rows = [row for row in cell["rules"][rule]["power_by_spread"] if row["n"]]
        x = [(row["from"] * row["to"]) ** 0.5 for row in rows]
        y = [row["percent"] for row in rows]
        error = [1.96 * row["se"] for row in rows]
        _line(axes, x, y, rule, error)
        ends.append((y[-1], rule))
    axes.set_xscale("log")
    ticks = [0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, 104)
    axes.set_xlabel("seed-to-seed spread over the margin")
    axes.set_title("Good arms promoted, %")
    _end_labels(axes, ends, 1.88)
    axes.set_xlim(0.2, 4.8)
    axes.spines["bottom"].set_bounds(0.2, 2.0)


def delay(axes: Axes, cells: Cells) -> None:
    """Regressions of two margins seen within so many production runs."""
    cell, last, ends = cell_of(cells, "regressing"), 16, []
    for rule in [rule for rule in MARKERS if rule in cell["rules"]]:
        figures = cell["rules"][rule]
        counts = {int(runs): count for runs, count in figures["delay"]["counts"].items()}
        n = figures["right_reverts"]["n"]
        seen = [100 * sum(c for runs, c in counts.items() if runs <= k) / n for k in range(last)]
        _line(axes, range(last), seen, rule)
        ends.append((seen[-1], rule))
    axes.set_ylim(0, 104)
    axes.set_xlabel("production runs since the regression (spread at most the margin)")
    axes.set_title("Regressions of two margins taken back, %")
    _end_labels(axes, ends, last - 0.6)
    axes.set_xlim(0, last + 8)
    axes.set_xticks(range(0, last, 3))
    axes.spines["bottom"].set_bounds(0, last - 1)


def _rules_of(cell: dict[str, Any]) -> list[str]:
    order = ["hybrid", "shadow", "canary", *RULES]
    return list(dict.fromkeys(rule for rule in order if rule in cell["rules"]))


def _ranked(axes: Axes, cell: dict[str, Any], key: str) -> None:
    rules = _rules_of(cell)
    for position, rule in enumerate(rules):
        _bar(axes, position, cell["rules"][rule][key], rule)
    axes.set_yticks(range(len(rules)), [NAMES[rule] for rule in rules])
    axes.set_ylim(len(rules) - 0.4, -0.6)


def _bar(axes: Axes, position: float, figure: dict[str, Any], rule: str) -> None:
    """One bar with its 95 % interval and its value."""
    value, error = figure["percent"] or 0.0, 1.96 * (figure["se"] or 0.0)
    axes.barh(position, value, height=0.68, color=COLOURS[rule])
    if error:
        low = min(error, value)
        axes.errorbar(value, position, xerr=[[low], [error]], color="#333333", capsize=2.5, lw=1)
    words = "-" if figure["percent"] is None else f"{value:.1f}"
    axes.annotate(
        words,
        (value + error, position),
        (5, 0),
        textcoords="offset points",
        va="center",
        bbox=PAPER,
    )


def _bars(axes: Axes, title: str) -> None:
    axes.set_title(title)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.14)
    axes.set_xlim(left=0)


def _line(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    rule: str,
    error: Sequence[float] | None = None,
) -> None:
    style = "-" if rule in {"hybrid", "shadow", "canary"} else "--"
    axes.errorbar(
        x, y, yerr=error, color=COLOURS[rule], marker=MARKERS[rule], markersize=5,
        linestyle=style, linewidth=1.8, elinewidth=0.9, capsize=2,
    )  # fmt: skip


def _end_labels(axes: Axes, ends: list[tuple[float, str]], x: float) -> None:
    """Names at the lines' ends, moved apart where they would overlap."""
    at = -1e9
    for value, rule in sorted(ends):
        at = max(value, at + 7)
        axes.text(x, at, NAMES[rule], color=_dark(COLOURS[rule]), va="center", weight="bold")


def _dark(colour: str) -> tuple[float, ...]:
    """The colour as text on white, where light ones would hardly be read."""
    return tuple(0.65 * part for part in to_rgb(colour))


if __name__ == "__main__":
    main()
