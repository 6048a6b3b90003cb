"""The history's charts: what lies behind the runs, above them, and beside each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.production.history import history
from compilegate.domain.records.runs import ProductionRun
from compilegate.report.charts.base import LIGHT
from compilegate.report.history.axis import bands, marks, runs_axis
from compilegate.report.history.charts import charts
from compilegate.report.history.view import Event, HistoryView
from tests.domain.production.run_builder import BEGIN, DAY, production_run

OFF = Flag(False, "off")
ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "2026-01-01T00:00:00Z")
REVERTED = Flag(False, "reverted", "compile")


def flag(version: int, after: int, to: Flag, **more: Any) -> dict[str, Any]:
    """A change of the flag after so many runs."""
    return {
        "kind": "flag", "version": version, "at": int(BEGIN + (after + 0.5) * DAY),
        "by": "evaluate", "action": "enable", "reason": "proven", "trial": "t1",
        "from": OFF.to_json(), "to": to.to_json(), "overrode": None, **more,
    }  # fmt: skip


def view_of(runs: list[ProductionRun], *flags: dict[str, Any]) -> HistoryView:
    entries = [replace(run, at=int(run.ended_at)).to_entry() for run in runs]
    quality = {"metric": "eval_loss", "goal": "minimize", "margin": 0.05}
    past = history([*entries, *flags])
    return HistoryView("bert-docs", past, "prod", workload={"quality": quality})


def lived() -> HistoryView:
    """Two runs before the promotion, four under it, two after the revert."""
    arms = ["baseline"] * 2 + ["compile"] * 4 + ["baseline"] * 2
    runs = [production_run(number, arm) for number, arm in enumerate(arms, 1)]
    return view_of(runs, flag(1, 2, ON), flag(2, 6, REVERTED, by="train", action="revert"))


def test_the_flag_lies_behind_the_runs_that_read_it() -> None:
    shapes, _ = bands(lived())

    assert [(2.5, 6.5, LIGHT["first_fill"]), (6.5, 8.5, LIGHT["limit_fill"])] == [
        (shape["x0"], shape["x1"], shape["fillcolor"]) for shape in shapes
    ]


def event(place: float, mark: str | None) -> Event:
    return Event(0.0, "flag", "title", place=place, mark=mark)


@pytest.mark.parametrize(
    ("places", "rows"),
    [([1.5, 6.5], [0, 0]), ([1.5, 1.5, 1.5], [0, 1, 2]), ([1.5, 2.0, 7.5], [0, 1, 0])],
)
def test_names_that_would_lie_on_each_other_stand_one_row_up(
    places: list[float], rows: list[int]
) -> None:
    _, names = marks(lived(), [event(place, "x") for place in places], named=True)

    assert rows == [(name["yshift"] - 2) // 15 for name in names]


def test_too_many_marks_are_lines_without_names() -> None:
    lines, names = marks(lived(), [event(1.5, "x")] * 20 + [event(1.5, None)], named=True)

    assert (20, 0) == (len(lines), len(names))


def test_the_rolling_baseline_follows_production() -> None:
    metrics = [2.0, 2.2, 3.0, 2.4]
    arms = ["baseline", "baseline", "compile", "baseline"]
    view = view_of(
        [
            production_run(number, arm, metric=metric)
            for number, (arm, metric) in enumerate(zip(arms, metrics, strict=True), 1)
        ]
    )

    assert pytest.approx([2.0, 2.1, 2.1, 2.2]) == [one.metric for one in view.standards]


@pytest.mark.parametrize(
    ("count", "step"),
    [
        (2, 1),
        (16, 1),
        (17, 5),
        (500, 50),
        (99_999, 99_999),
    ],
)
def test_runs_are_whole_numbers_on_the_axis(count: int, step: int) -> None:
    one = view_of([production_run(1)])
    many = replace(one.history, runs=one.history.runs * count)
    axis = runs_axis(replace(one, history=many))

    assert ("linear", step) == (axis["tickmode"], axis["dtick"])


def test_the_margin_is_in_view_however_near_the_runs_are() -> None:
    runs = [production_run(number, "baseline", metric=1.0) for number in (1, 2)]
    (quality, *_) = charts(view_of(runs), [])

    low, high = quality.views[0].figure["layout"]["yaxis"]["range"]
    assert low < 1.0
    assert high > 1.05


def test_two_charts_stand_side_by_side_and_none_is_left_over() -> None:
    drawn = [chart for chart in charts(lived(), []) if chart.views]

    assert ["quality", "wall", "money"] == [chart.id for chart in drawn]
    assert [True, False, False] == [chart.wide for chart in drawn]


def test_before_the_first_run_there_is_nothing_to_draw() -> None:
    assert [] == charts(view_of([]), [])


def test_a_text_that_a_team_wrote_is_no_markup_in_a_chart() -> None:
    view = view_of([production_run(1, "<b>arm</b>", metric=1.0)])
    (quality, *_) = charts(view, [])

    traces = quality.views[0].figure["data"]
    assert "&lt;b&gt;arm&lt;/b&gt;" in {trace.get("name") for trace in traces}
