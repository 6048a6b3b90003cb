"""A document is read by the declarations of its keys: type, bounds, default, and what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import Form, Key, Problem, Section, key
from compilegate.domain.fields import LARGEST, Fields

WORD = Form(re.compile(r"[a-z]+"), "is no word", "write letters", 5)
COUNT = Key("how many", "pieces", low=2, high=9)


def no_seed(values: Mapping[str, Any]) -> Iterator[Problem]:
    if "seed" in values:
        yield "seed", "is the trial's", "remove it"


@dataclass(frozen=True)
class Inner(Section):
    count: int = key(COUNT)


@dataclass(frozen=True, kw_only=True)
class Whole(Section):
    text: str = key("a word", form=WORD)
    word: str = key("one of two", default="no", allowed=("no", "yes"))
    share: float | None = key("a share", "share of 1", default=None, above=0.0, high=1.0)
    count: int = key(COUNT, default=3)
    on: bool = key("whether", default=False)
    history: tuple[float, ...] = key("figures", default=())
    kinds: tuple[str, ...] = key("words", default=(), form=WORD)
    values: Mapping[str, Any] = key("plain values", factory=dict, check=no_seed)
    tags: Mapping[str, str] = key("texts", factory=dict, example="a: b")
    prices: Mapping[str, float] = key("figures by name", factory=dict)
    inner: Inner | None = key("a section", default=None)
    needed: Inner = key("a section that must be there")
    limits: Inner = key("a section that has defaults", factory=lambda: Inner(count=2))
    groups: tuple[Inner, ...] = key("several", default=())

    def problems(self) -> Iterator[Problem]:
        if self.count == len(self.text):
            yield "count", "is the word's length", "choose another"


DOCUMENT = {"text": "abc", "count": 4, "needed": {"count": 8}}


def read(**document: Any) -> Whole:
    return Fields({**DOCUMENT, **document}).read(Whole)


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("text", "abcde", "abcde"),
        ("word", "yes", "yes"), ("word", None, "no"),
        ("share", 1, 1.0), ("share", None, None),
        ("count", 2, 2), ("count", 9, 9),
        ("on", True, True),
        ("history", [1, 2.5], (1.0, 2.5)), ("history", None, ()),
        ("kinds", ["a", "b"], ("a", "b")),
        ("values", {"a": 1, "b": "x"}, {"a": 1, "b": "x"}), ("values", None, {}),
        ("tags", {"a": 1}, {"a": "1"}),
        ("prices", {"a": 1, "b": 0.5}, {"a": 1.0, "b": 0.5}),
        ("inner", {"count": 5}, Inner(count=5)), ("inner", None, None),
        ("limits", None, Inner(count=2)),
        ("groups", [{"count": 5}, {"count": 6}], (Inner(count=5), Inner(count=6))),
    ],
)  # fmt: skip
def test_a_value_is_read_by_its_declaration(name, written, value):
    actual = getattr(read(**{name: written}), name)

    assert (value, type(value)) == (actual, type(actual))


@pytest.mark.parametrize(
    ("name", "written", "place"),
    [
        ("text", "abcdef", "text"), ("text", "a1", "text"), ("text", 7, "text"),
        ("word", "maybe", "word"),
        ("share", 0.0, "share"), ("share", 1.5, "share"), ("share", LARGEST * 2, "share"),
        ("share", True, "share"),
        ("count", 1, "count"), ("count", 10, "count"), ("count", 4.0, "count"),
        ("on", "yes", "on"),
        ("history", ["a"], "history"), ("kinds", ["a", "B"], "kinds"), ("kinds", "a", "kinds"),
        ("values", {"seed": 1}, "values.seed"), ("values", {"a": []}, "values.a"),
        ("tags", {"a": True}, "tags.a"), ("prices", {"a": None}, "prices.a"),
        ("needed", None, "needed"), ("inner", {}, "inner.count"),
        ("inner", {"count": 5, "more": 1}, "inner.more"),
        ("groups", [{"count": 5}, {"count": 1}], "groups[1].count"),
        ("count", 3, "count"),
        ("more", 1, "more"),
    ],
)  # fmt: skip
def test_what_breaks_the_declaration_is_refused_at_its_place(name, written, place):
    with pytest.raises(InvalidInputError) as caught:
        read(**{name: written})

    assert place == caught.value.field
    assert caught.value.fix
