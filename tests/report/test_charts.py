"""Figures: what each one draws, and that it is of the decision's own numbers."""

import itertools
import re
from xml.etree import ElementTree

import pytest

from compilegate.report.charts.figure import (
    Axis,
    Figure,
    Line,
    Points,
    Rule,
    arm_style,
    round_ticks,
)
from compilegate.report.charts.svg import draw, legend
from compilegate.report.markup import ASSETS
from compilegate.report.render import charts
from compilegate.usecases.reports import read_trial_report
from tests.report import samples

MEASURED = set(samples.SAMPLES) - {"ineligible"}


def _charts(source):
    return {chart.id: chart for chart in charts(read_trial_report(source))}


def _of(figure, kind):
    return [mark for mark in figure.marks if isinstance(mark, kind)]


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_every_mark_lies_within_the_axes_of_its_figure(name):
    charts = _charts(samples.SAMPLES[name]())
    assert bool(charts) == (name != "underpowered")  # nothing was measured
    for chart in charts.values():
        for view in chart.views:
            x, y = view.figure.x, view.figure.y
            assert x.low < x.high
            assert y.low != y.high
            for points in _of(view.figure, Points):
                assert all(x.low <= value <= x.high for value in points.x), chart.id
                low, high = sorted((y.low, y.high))
                assert all(low <= value <= high for value in points.y), chart.id
                assert len(points.x) == len(points.y) == len(points.words)


def test_ticks_are_round_few_and_in_view():
    spans = itertools.product((1e-9, 0.003, 1, 7, 3e6), (0, -0.4, 0.3, 1234.5))
    for span, begin in spans:
        low, high = begin * span, begin * span + span
        ticks = round_ticks(low, high, 5, str)
        values = [value for value, _ in ticks]
        steps = {f"{b - a:.6e}" for a, b in itertools.pairwise(values)}

        assert 2 <= len(ticks) <= 7
        assert all(low - span / 1e6 <= value <= high + span / 1e6 for value in values)
        assert len(steps) == 1
        assert steps.pop()[0] in "125"


STYLE = (ASSETS / "style.css").read_text(encoding="utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--(\w+): (#\w{6})", block))
    for block in re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)
)
UNIT = Axis("", 0.0, 1.0)


def parsed(figure):
    return ElementTree.fromstring(draw(figure, "words & more"))


def test_text_of_a_team_is_text():
    words = "<b onclick='x'>\u202e&"
    points = Points([0.5], [0.5], "first", "circle", [words], name=words)
    drawn = parsed(
        Figure(Axis(words, 0, 1, [(0.5, words)]), UNIT, [points, Rule("limit", x=0.2, name=words)])
    )
    texts = [element.text for element in drawn.iter() if element.text]

    assert {"svg", "g", "path", "text", "title"} == {element.tag for element in drawn.iter()}
    assert "<b onclick='x'>\\u202e&" in texts
    assert "words & more" == drawn.get("aria-label")


def test_gaps_break_a_line_and_equal_pixels_are_drawn_once():
    x = [0.0, 0.1, 0.2, 0.3, 0.3000001]
    (path,) = parsed(Figure(UNIT, UNIT, [Line(x, [0.1, None, 0.2, 0.3, 0.3], "first")])).iter(
        "path"
    )

    assert 2 == path.get("d").count("M")
    assert 1 == path.get("d").count("L")


def test_the_legend_names_each_mark_once():
    marks = [
        Line([0, 1], [0, 1], "first", name="one"),
        Points([0.5], [0.5], "first", "circle", ["x"], name="one"),
        Rule("limit", y=0.5, name="limit"),
        Rule("limit", x=0.5, name="stands above"),
    ]

    assert ["one", "limit"] == [name for _, name in legend(Figure(UNIT, UNIT, marks))]


def test_every_role_has_its_colour_in_both_themes():
    assert LIGHT.keys() == DARK.keys()
    for index in range(5):
        assert f"svg .{arm_style(index).role} " in STYLE


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_stand_out_from_the_paper(theme):
    """WCAG 2.2: 4.5 for text, 3 for graphics."""
    surfaces = {"page", "paper", "line", "marked", "grid"}
    for role in theme.keys() - surfaces:
        # A zero line behind the data, which the ticks name too.
        needed = {"axis": 2, "shade": 3}.get(role, 4.5)
        assert _contrast(theme[role], theme["paper"]) >= needed, role


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
