"""The drawing against its figure, read from the SVG alone: the labelled ticks are its scale."""

import math
import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

from compilegate.report.charts.figure import (
    Area,
    Axis,
    Band,
    Bar,
    Figure,
    Interval,
    Label,
    Line,
    Points,
    Rule,
)
from compilegate.report.charts.svg import draw, legend, symbol, text_width

X = Axis("", 0.0, 40.0, [(10.0, "10"), (30.0, "30")], grid=True)
Y = Axis("", -1.0, 1.0, [(-0.5, "-0.5"), (0.5, "0.5")], grid=True)
# Without ticks the plot lies from pixel 8 to pixel 410, so values are pixels.
PIXELS = Axis("", 8.0, 410.0)
UNIT = Axis("", 0.0, 1.0)
BASE = 4  # a text's foot is so far below its middle


def parsed(figure):
    return ElementTree.fromstring(draw(figure, ""))


def shown(element):
    return (element.text, float(element.get("x")), float(element.get("y")))


def ticks_of(picture, anchor):
    return [shown(t) for t in picture.iter("text") if t.get("text-anchor") == anchor]


def corners(path):
    """The corners of each stroke of a path, its relative moves added up."""
    strokes, x, y = [], 0.0, 0.0
    for command, text in re.findall(r"([a-zA-Z])([^a-zA-Z]*)", path):
        to = [float(number) for number in text.split()]
        dx, dy = {"h": (1, 0), "v": (0, 1)}.get(command, (1, 1))
        if command in "ML":
            x, y = to
        elif command in "HV":
            x, y = (to[0], y) if command == "H" else (x, to[0])
        elif command in "hvl":
            x, y = x + dx * to[0], y + dy * to[-1]
        elif command == "a":
            x, y = x + to[-2], y + to[-1]
        strokes += [[]] if command == "M" else []
        if command not in "zZ":
            strokes[-1].append((x, y))
    return strokes


def shape(element):
    if element.tag == "rect":
        x, y, wide, high = (float(element.get(key)) for key in ("x", "y", "width", "height"))
        return [[(x, y), (x + wide, y + high)]]
    if element.tag == "text":
        return [[shown(element)[1:]]]
    return corners(element.get("d"))


def expected_at(picture):
    """Where a value is drawn, and so many pixels below it, by two ticks of each axis."""
    (low, x1, _), (high, x2, _) = ticks_of(picture, "middle")
    (down, _, y1), (up, _, y2) = ticks_of(picture, "end")
    wide = (x2 - x1) / (float(high) - float(low))
    tall = (y2 - y1) / (float(up) - float(down))

    def at(x, y, below=0.0):
        return (
            pytest.approx(x1 + (x - float(low)) * wide, abs=0.3),
            pytest.approx(y1 - BASE + (y - float(down)) * tall + below, abs=0.3),
        )

    return at


SLOPE = [(0, -1), (20, 0), (40, 1)]
DRAWN = {
    "a line": (Line([0, 20, 40], [-1, 0, 1], "first", dash="2 3"), [SLOPE],
               {"class": "first", "stroke-width": "2.4", "stroke-dasharray": "2 3"}),
    "a pale line": (Line([0, 20, 40], [-1, 0, 1], "first", 1, pale=True), [SLOPE],
                    {"stroke-width": "1", "opacity": "0.3", "fill": "none",
                     "stroke-dasharray": None}),
    "steps": (Line([0, 10, 20, 30], [0, 0.5, 0.5, -1], "first", stepped=True),
              [[(0, 0), (10, 0), (10, 0.5), (30, 0.5), (30, -1)]], {"opacity": None}),
    "steps that end level": (Line([5, 10, 20], [0, 0.5, 0.5], "first", stepped=True),
                             [[(5, 0), (10, 0), (10, 0.5), (20, 0.5)]], {}),
    "gaps": (Line([0, 10, 20, 25, 30, 40], [0, None, 0.5, 0.25, math.nan, 1], "first"),
             [[(0, 0)], [(20, 0.5), (25, 0.25)], [(40, 1)]], {}),
    "no steps": (Line([], [], "first", stepped=True), [], {}),
    "what leaves the plot": (Line([-5, 45], [-3, 2], "first"), [[(0, -1), (40, 1)]], {}),
    "an area": (Area([0, 10, 40], [-1, 0, 0], [0, 1, 0.5], "first"),
                [[(0, 0), (10, 1), (40, 0.5), (40, 0), (10, 0), (0, -1)]], {"opacity": "0.18"}),
    "an area in steps": (Area([0, 10, 40], [-1, -0.5, -0.5], [0, 1, 1], "first", stepped=True),
                         [[(0, 0), (10, 0), (10, 1), (40, 1), (40, -0.5), (10, -0.5), (10, -1),
                           (0, -1)]], {}),
    "an interval": (Interval(10, 30, 0.5, "first"),
                    [[(10, 0.5), (30, 0.5)], [(10, 0.5, -5), (10, 0.5, 5)],
                     [(30, 0.5, -5), (30, 0.5, 5)]], {"stroke-width": "2"}),
    "a level": (Rule("limit", y=0.5, dash="7 4"), [[(0, 0.5), (40, 0.5)]],
                {"class": "limit", "stroke-width": "1.5", "stroke-dasharray": "7 4"}),
    "level zero": (Rule("limit", y=0.0), [[(0, 0), (40, 0)]], {}),
    "an upright": (Rule("goal", x=10, dash="7 4"), [[(10, 1), (10, -1)]],
                   {"class": "goal", "stroke-width": "1.5", "stroke-dasharray": "7 4"}),
    "upright zero": (Rule("goal", x=0.0), [[(0, 1), (0, -1)]], {}),
    "a bar": (Bar(5, 30, 0.5, 0.4, "first", "words", full=True), [[(5, 0.7), (30, 0.3)]],
              {"class": "first", "fill-opacity": "0.75"}),
    "a bar to the left": (Bar(30, 5, 0.5, 0.4, "first", ""), [[(5, 0.7), (30, 0.3)]],
                          {"fill-opacity": "0.18"}),
    "a band": (Band(10, 30, "shade"), [[(10, 1), (30, -1)]],
               {"class": "shade", "opacity": "0.13"}),
    "a label": (Label("abc", 10, 0.5, above=14), [[(10, 0.5, -14)]],
                {"class": "text", "text-anchor": None}),
    "open circles": (Points([10, 20], [0.5, -1], "first", "circle", ["a", "b"], 10, open=True),
                     [[(10, 0.5)], [(20, -1)]], {"fill": "none", "opacity": None}),
    "many circles": (Points([10, 20], [0.5, -1], "first", "circle", [], 10, pale=True),
                     [[(10, 0.5), (20, -1)]], {"fill": "currentColor", "opacity": "0.6"}),
}  # fmt: skip


@pytest.mark.parametrize(("mark", "strokes", "looks"), DRAWN.values(), ids=DRAWN)
def test_a_mark_stands_where_the_ticks_say_and_looks_as_it_should(mark, strokes, looks):
    picture = parsed(Figure(X, Y, [mark]))
    at = expected_at(picture)
    drawn = list(picture)[8:]  # after two ticks and their lines of each axis
    (element,) = drawn

    assert looks.items() <= {key: element.get(key) for key in looks}.items()
    if isinstance(mark, Points):
        found = [[centre(one) for one in corners_of_circles(p.get("d"))] for p in element]
        assert [w.text for w in element.iter("title")] == list(mark.words)
        # Both halves of the circle are as wide as it is said to be.
        assert {10.0} == {wide(one) for p in element for one in corners_of_circles(p.get("d"))}
    else:
        found = shape(element)
    assert [[at(*corner) for corner in stroke] for stroke in strokes] == found


def corners_of_circles(path):
    return [f"M{one}" for one in path.split("M")[1:]]


def centre(circle):
    ((begin, across, back),) = corners(circle)
    assert begin == pytest.approx(back)
    return ((begin[0] + across[0]) / 2, begin[1])


def wide(circle):
    ((begin, across, _),) = corners(circle)
    radii = {float(r) for r in re.findall(r"a(\S+) (\S+) 0 1 0", circle)[0]}
    assert {round(across[0] - begin[0], 1) / 2} == radii
    return round(across[0] - begin[0], 1)


@pytest.mark.parametrize("name", ["diamond", "square", "triangle", "cross"])
def test_every_marker_is_symmetric_about_its_place_and_as_large_as_the_circle(name):
    ((*points,),) = corners(symbol(name, 100.0, 50.0, 20.0))
    pairs = list(pairwise([*points, points[0]]))
    twice = [a[0] * b[1] - b[0] * a[1] for a, b in pairs]
    middle = sum((a[1] + b[1]) * t for (a, b), t in zip(pairs, twice, strict=True)) / sum(twice) / 3

    rounded = {(round(x, 1), round(y, 1)) for x, y in points}
    assert rounded == {(round(200 - x, 1), y) for x, y in rounded}
    assert 50 == pytest.approx(middle, abs=4)
    assert {True} == {max(abs(x - 100), abs(y - 50)) <= 26 for x, y in points}
    assert math.pi * 20**2 == pytest.approx(abs(sum(twice)) / 2, rel=0.3)
    turned = {(round(y + 50, 1), round(x - 50, 1)) for x, y in rounded}
    assert (name == "triangle") == (rounded != turned)


def test_a_logarithmic_axis_gives_every_decade_the_same_room():
    axis = Axis("", 0.1, 1000.0, [(1.0, "1"), (100.0, "100")], logarithmic=True)
    picture = parsed(Figure(axis, Y, [Line([0.1, 1, 10, 100, 1000], [0] * 5, "first")]))
    (*_, line) = picture
    ((*points,),) = corners(line.get("d"))
    steps = [b[0] - a[0] for a, b in pairwise(points)]

    assert steps == pytest.approx([steps[0]] * 4, abs=0.2)
    assert [x for _, x, _ in ticks_of(picture, "middle")] == [points[1][0], points[3][0]]


@pytest.mark.parametrize(
    ("x", "y", "left", "right", "below"),
    [
        # A letter is 7.44 wide, a text one letter more than it has, and 8 apart from the plot.
        ([], [], 8, 410, 8),
        ([], [(0.5, "1234"), (0.7, "1")], 5 * 7.44 + 8, 410, 8),
        ([(0.1, "123456789"), (0.9, "1")], [(0.5, "1")], 10 * 7.44 / 2, 410, 23),
        ([(0.1, "1"), (0.9, "12345")], [], 8, 418 - 6 * 7.44 / 2, 23),
    ],
)
def test_the_plot_leaves_room_for_the_texts_around_it(x, y, left, right, below):
    figure = Figure(Axis("", 0, 1, x), Axis("", 0, 1, y), [Rule("axis", y=0.0), Rule("a", x=0.0)])
    picture = parsed(figure)
    level, upright = (corners(p.get("d"))[0] for p in picture.iter("path"))

    assert [left, right] == pytest.approx([level[0][0], level[1][0]], abs=0.06)
    assert [8, 238] == [y for _, y in upright]
    assert ["420", f"{238 + below}"] == [picture.get("width"), picture.get("height")]
    assert f"0 0 420 {238 + below}" == picture.get("viewBox")
    for text, at, foot in ticks_of(picture, "end"):
        assert (pytest.approx(left - 8, abs=0.06), True) == (at, at >= text_width(text) - 0.1)
        assert foot - BASE == pytest.approx(238 - 230 * {t: v for v, t in y}[text], abs=0.06)
    assert {253} >= {foot for *_, foot in ticks_of(picture, "middle")}


def test_grid_lines_cross_the_plot_at_each_tick_where_there_are_to_be_any():
    """The text -0.5 takes 37.2 and 8 beside it, and 30 half of 22.32 and 2 beside it."""
    left, right = 45.2, 420 - 11.16 - 2
    for x, y, anchor, length in ((True, False, "middle", 230), (False, True, "end", right - left)):
        figure = Figure(Axis("", 0, 40, X.ticks, grid=x), Axis("", -1, 1, Y.ticks, grid=y), [])
        picture = parsed(figure)
        lines = [corners(p.get("d"))[0] for p in picture.iter("path")]

        assert [("grid", "1")] * 2 == [
            (p.get("class"), p.get("stroke-width")) for p in picture.iter("path")
        ]
        places = [at if x else foot - BASE for _, at, foot in ticks_of(picture, anchor)]
        assert [(at, at) for at in places] == [(a[y], b[y]) for a, b in lines]
        assert [pytest.approx(length, abs=0.1)] * 2 == [abs(b[x] - a[x]) for a, b in lines]


@pytest.mark.parametrize(("count", "every"), [(1, 1), (27, 1), (28, 2), (130, 5), (270, 10)])
def test_of_ticks_that_would_touch_as_few_are_left_out_as_must_be(count, every):
    """402 pixels, and each text of one letter takes 14.88: 27 intervals have room."""
    ticks = [(n / count, "1") for n in range(count)]
    picture = parsed(Figure(Axis("", 0, 1, ticks), UNIT, []))
    places = [x for _, x, _ in ticks_of(picture, "middle")]

    assert places == pytest.approx([8 + 402 * n / count for n in range(0, count, every)], abs=0.06)
    wide = Axis("", 0, 1, [(0.1, "1"), (0.5, "n" * 25), (0.6, "1")])
    assert ["1", "1"] == [text for text, *_ in ticks_of(parsed(Figure(wide, UNIT, [])), "middle")]


def test_of_ticks_one_above_the_other_each_has_its_line():
    for count, kept in ((15, 15), (16, 8), (1000, 10), (2000, 1)):
        ticks = [(n / count, "1") for n in range(count)]
        picture = parsed(Figure(UNIT, Axis("", 0, 1, ticks), []))
        assert kept == len(ticks_of(picture, "end"))


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        # "abc" is 29.76 wide, and names in a row are 8 apart.
        ([(100, "abc")], [("abc", 100, 0)]),
        ([(100, "abc"), (137.8, "abc")], [("abc", 100, 0), ("abc", 137.8, 0)]),
        ([(137.6, "abc"), (100, "abc")], [("abc", 100, 0), ("abc", 137.6, 1)]),
        (
            [(100, "abc"), (101, "abc"), (102, "abc"), (103, "abc")],
            [("abc", 100, 0), ("abc", 101, 1), ("abc", 102, 2)],
        ),
        ([(10, "abc"), (409, "abc")], [("abc", 14.88, 0), ("abc", 420 - 14.88, 0)]),
        ([(100, ""), (101, "abc")], [("abc", 101, 0)]),
        ([(200, "n" * 55)], [("n" * 55, 28 * 7.44, 0)]),
        ([(200, "n" * 60)], [("n" * 54 + "…", 28 * 7.44, 0)]),
    ],
)
def test_the_name_of_an_upright_stands_above_it_where_it_has_room(rules, names):
    marks = [Rule("limit", x=float(x), name=name) for x, name in rules]
    picture = parsed(Figure(PIXELS, UNIT, marks))
    top = 8 + 15 * (1 + max(row for *_, row in names))

    assert [shown(t) for t in picture.iter("text")] == [
        (name, pytest.approx(x, abs=0.06), top - 8 - 15 * row) for name, x, row in names
    ]
    assert {"limit"} == {t.get("class") for t in picture.iter("text")}
    assert {(top, top + 230)} == {
        tuple(y for _, y in corners(p.get("d"))[0]) for p in picture.iter("path")
    }


@pytest.mark.parametrize(
    ("x", "length", "left"), [(345.6, 9, 9), (345.6, 10, 8), (345.7, 9, 7), (410, 1, 0)]
)
def test_a_label_is_cut_where_it_would_leave_the_picture(x, length, left):
    (text,) = parsed(Figure(PIXELS, UNIT, [Label("x" * length, x, 0.5)])).iter("text")

    assert text.text == "x" * left + ("…" if left < length else "")


@pytest.mark.parametrize(("width", "named"), [(45.3, True), (45.1, False)])
def test_a_band_has_its_name_at_its_foot_where_that_has_room(width, named):
    """The name takes 37.2 and 8 beside it."""
    picture = parsed(Figure(PIXELS, UNIT, [Band(100, 100 + width, "first", "abcd")]))

    assert ([("abcd", 108, 230)] if named else []) == [shown(t) for t in picture.iter("text")]


POINT = Points([0.5], [0.5], "first", "square", [""], 8, name="p")
SAMPLES = [
    (Line([0], [0], "first", 1.4, "2 3", name="a"), "path",
     {"class": "first", "stroke-width": "1.4", "stroke-dasharray": "2 3", "d": "M1 6H25"}),
    (Rule("limit", y=0.5, dash="7 4", name="a"), "path",
     {"class": "limit", "stroke-width": "1.5", "stroke-dasharray": "7 4", "d": "M1 6H25"}),
    (POINT, "path", {"class": "point first", "fill": "currentColor",
                     "d": symbol("square", 13, 6, 4)}),
    (Points([0], [0], "first", "circle", [""], open=True, name="a"), "path", {"fill": "none"}),
    (Area([0], [0], [1], "first", name="a"), "rect", {"class": "first", "fill-opacity": "0.18"}),
    (Bar(0, 1, 0, 1, "first", "", name="a"), "rect", {"fill-opacity": "0.18"}),
    (Bar(0, 1, 0, 1, "first", "", full=True, name="a"), "rect", {"fill-opacity": "0.75"}),
]  # fmt: skip


@pytest.mark.parametrize(("mark", "tag", "looks"), SAMPLES)
def test_the_legend_shows_a_sample_of_the_mark(mark, tag, looks):
    ((sample, name),) = legend(Figure(UNIT, UNIT, [mark, Line([0], [0], "first")]))
    ((element),) = ElementTree.fromstring(sample)

    assert (mark.name, tag) == (name, element.tag)
    assert looks == {key: element.get(key) for key in looks}


def test_no_two_texts_of_a_full_figure_touch_and_none_leaves_the_picture():
    rules = [Rule("limit", x=float(x), name=f"rule at {x}") for x in (0, 12, 13, 40)]
    labels = [Label("a row", 0.0, y, above=14) for y in (-0.6, 0.6)]
    picture = parsed(Figure(X, Y, [*rules, *labels, Band(10, 39, "first", "the flag")]))
    boxes = []
    for text in picture.iter("text"):
        words, x, y = shown(text)
        size = text_width(words)
        left = {"end": x - size, "middle": x - size / 2}.get(text.get("text-anchor"), x)
        boxes.append((left, y - 12, left + size, y + 3))

    assert 10 <= len(boxes)
    tall = float(picture.get("height"))
    assert all(-0.1 <= a and b >= 0 and c <= 420.1 and d <= tall for a, b, c, d in boxes)
    for one, other in combinations(boxes, 2):
        assert any(one[n] >= other[n + 2] or other[n] >= one[n + 2] for n in (0, 1))
