"""Documents and their types: what is written is read again, and a damaged one names its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.codec import OMITTED, DocumentError, read, stored_as, write
from compilegate.domain.decision import Decision
from tests.domain.evidence_builder import GOOD, document, judge
from tests.domain.evidence_strategies import any_evidence
from tests.fuzzing import at_most


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Square:
    shape: str = field(default="square", init=False)
    side: float


@dataclass(frozen=True)
class Circle:
    shape: str = field(default="circle", init=False)
    radius: float


@dataclass(frozen=True)
class Drawing:
    name: str
    count: int
    colour: Colour
    size: int | str
    outline: Square | Circle | None
    points: tuple[tuple[float, float], ...]
    by_layer: Mapping[str, Square]
    hidden: bool = False
    note: str | None = field(default=None, metadata=OMITTED)
    drawn_by: str | None = field(default=None, metadata=stored_as("author"))
    more: Mapping[str, Any] = field(default_factory=dict)


figures = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60)
drawings = st.builds(
    Drawing,
    name=st.text(),
    count=st.integers(-(2**60), 2**60),
    colour=st.sampled_from(Colour),
    size=st.text() | st.integers(-10, 10),
    outline=st.none() | st.builds(Square, side=figures) | st.builds(Circle, radius=figures),
    points=st.lists(st.tuples(figures, figures), max_size=3).map(tuple),
    by_layer=st.dictionaries(st.text(), st.builds(Square, side=figures), max_size=2),
    hidden=st.booleans(),
    note=st.none() | st.text(),
    drawn_by=st.none() | st.text(),
    more=st.dictionaries(st.text(), st.none() | st.lists(st.booleans(), max_size=2), max_size=2),
)
DRAWING = {
    "name": "n", "count": 3, "colour": "red", "size": "A4",
    "outline": {"shape": "circle", "radius": 2},
    "points": [[1, 2], [3, 4.5]], "by_layer": {"a": {"shape": "square", "side": 1}},
}  # fmt: skip


@given(drawing=drawings)
def test_what_is_written_is_read_again(drawing):
    assert drawing == read(Drawing, json.loads(json.dumps(write(drawing))))


def test_a_document_has_its_own_keys_and_leaves_out_what_it_does_not_say():
    drawing = read(Drawing, {**DRAWING, "author": "ana", "of_a_later_release": {"a": 1}})

    assert ("ana", Circle(2), Colour.RED) == (drawing.drawn_by, drawing.outline, drawing.colour)
    assert write(drawing) == {**DRAWING, "hidden": False, "author": "ana", "more": {}}
    assert (Colour, str) == (type(drawing.colour), type(write(drawing)["colour"]))
    assert write(read(Drawing, {**DRAWING, "note": "x"}))["note"] == "x"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": 5}, "name is 5"),
        ({"count": 1.5}, "count is 1.5"),
        ({"count": True}, "count is True"),
        ({"count": 2**70}, f"count is {2**70}"),
        ({"hidden": 1}, "hidden is 1"),
        ({"outline": {"shape": "circle"}}, "outline.radius is missing"),
        ({"outline": {"shape": "square", "side": "x"}}, "outline.side is 'x'"),
        ({"size": None}, "size is None"),
        ({"outline": {"shape": "line", "radius": 1}}, "outline.shape is 'line'"),
        ({"outline": [1]}, "outline is [1]"),
        ({"points": [[1, 2], [3, float("nan")]]}, "points[1][1] is nan"),
        ({"points": "xy"}, "points is 'xy'"),
        ({"by_layer": {"b": {"shape": "square", "side": None}}}, "by_layer.b.side is None"),
    ],
)
def test_a_damaged_document_names_the_place(change, problem):
    with pytest.raises(DocumentError) as raised:
        read(Drawing, {**DRAWING, **change})
    assert str(raised.value) == problem


@given(evidence=any_evidence)
@at_most(100)
def test_a_decision_is_read_from_its_document(evidence):
    written = judge(evidence).to_dict("flag")

    assert written == read(Decision, json.loads(json.dumps(written))).to_dict("flag")


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*place, key)
        if isinstance(item, dict | list):
            yield from places(item, (*place, key))


DECIDED = judge(document(metrics=GOOD)).to_dict("flag")


@given(
    place=st.sampled_from(list(places(DECIDED))),
    value=st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([]),
)
def test_a_decision_that_is_damaged_anywhere_is_read_or_names_the_place(place, value):
    damaged = json.loads(json.dumps(DECIDED))
    inner = damaged
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value

    try:
        read(Decision, damaged)
    except DocumentError as error:
        assert str(error).startswith(str(place[0]))
