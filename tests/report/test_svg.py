"""Figures as SVG: well-formed, inert, in the style's own colours, labels apart."""

import re
from xml.etree import ElementTree

import pytest

from compilegate.report.charts.figure import Axis, Figure, Line, Points, Rule, arm_style
from compilegate.report.charts.svg import draw, text_width
from compilegate.report.markup import ASSETS

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


@pytest.mark.parametrize("count", [1, 3, 8])
def test_names_above_the_plot_never_touch_each_other_or_the_edge(count):
    rules = [Rule("limit", x=0.5 + 0.01 * n, name=f"event number {n}") for n in range(count)]
    drawn = parsed(Figure(UNIT, UNIT, rules))
    boxes = [
        (float(t.get("x")) - text_width(t.text) / 2, float(t.get("y")), text_width(t.text))
        for t in drawn.iter("text")
    ]

    assert min(count, 3) == len(boxes)
    assert count == len(list(drawn.iter("path")))
    assert len({y for _, y, _ in boxes}) == len(boxes)
    assert all(0 <= x and x + wide <= 420 for x, _, wide in boxes)


def test_gaps_break_a_line_and_equal_pixels_are_drawn_once():
    x = [0.0, 0.1, 0.2, 0.3, 0.3000001]
    (path,) = parsed(Figure(UNIT, UNIT, [Line(x, [0.1, None, 0.2, 0.3, 0.3], "first")])).iter(
        "path"
    )

    assert 2 == path.get("d").count("M")
    assert 1 == path.get("d").count("L")


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
