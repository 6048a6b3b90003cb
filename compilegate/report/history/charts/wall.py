"""Wall clock of every run, and what it is as a speed-up."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.formats import number, plural, ratio
from compilegate.report.charts.base import Chart, Frame, View, figure, line_across
from compilegate.report.charts.palette import LIGHT
from compilegate.report.history.charts.frame import bands, marks, points, runs_axis, standard_line
from compilegate.report.history.metric_cards import speedups
from compilegate.report.history.model import Event
from compilegate.report.history.view import HistoryView

TITLE = "Time of full jobs"


def wall_chart(view: HistoryView, events: Sequence[Event]) -> Chart:
    """A point a run: seconds, and how many times as fast as the rolling baseline."""
    chosen = [
        (run, value)
        for run in view.runs
        if (value := number(run.result.get("wall_seconds"))) is not None
    ]
    if not chosen:
        return Chart("wall", TITLE, "", missing="No run has recorded its wall clock yet.")
    shapes, names = bands(view)
    lines, _ = marks(view, events, named=False)
    axis = runs_axis(view)
    walls = figure(
        [
            standard_line([one.wall_seconds for one in view.standards], "rolling baseline"),
            *points(view, chosen, "%{y:.3~g} s"),
        ],
        Frame(
            x=axis, y={"title": "seconds, compiling included", "rangemode": "tozero"},
            shapes=[*shapes, *lines], annotations=names, extra={"showlegend": False},
        ),
    )  # fmt: skip
    gains = speedups(view)
    views = [View("Wall clock", walls)]
    if gains:
        faster = points(
            view, [(view.runs[place - 1], gain) for place, gain in gains], "%{y:.2f}x as fast"
        )
        frame = Frame(
            x=axis, y={"title": "speed-up of the whole job"},
            shapes=[*shapes, *lines, line_across(1.0, LIGHT["muted"], "dash")], annotations=names,
            extra={"showlegend": False},
        )  # fmt: skip
        views.append(View("Speed-up", figure(faster, frame)))
    return Chart(
        "wall", TITLE, _finding(gains), views=views, choice="What to show",
        note="Dashed: the latest baseline runs. A run's speed-up is theirs over its own. "
        "Marks as in the first chart.",
    )  # fmt: skip


def _finding(gains: Sequence[tuple[int, float]]) -> str:
    if not gains:
        return "No run with a compiler has a baseline to be compared with yet."
    values = sorted(gain for _, gain in gains)
    between = f"between {ratio(values[0])} and {ratio(values[-1])} as fast as the baseline"
    return f"With a compiler {plural(len(values), 'run')}, {between}."
