"""Size and journeys of the core may only shrink."""

from __future__ import annotations

import ast

import pytest

from tests.structure.figures import held, measured, none_tests
from tests.structure.journeys import Code, Journey


def test_size_and_journeys_of_the_core_only_shrink():
    """Where they have, `python -m tests.structure` holds what is reached."""
    most = {name: figure["value"] for name, figure in held().items()}
    now = measured()
    assert most.keys() == now.keys()
    assert [] == [name for name in now if now[name] <= 1 and "climbs" not in name]
    assert {} == {name: (now[name], most[name]) for name in most if now[name] > most[name]}


@pytest.mark.parametrize(
    ("body", "goes_on"),
    [
        ("a = event.first; taken(a)", True),
        ("a: int = event; taken(a)", True),
        ("a = 0; a += event; taken(a)", True),
        ("taken(a) if (a := event) else 0", True),
        ("for a in event: taken(a)", True),
        ("[taken(a) for a in event]", True),
        ("with event as a: taken(a)", True),
        ("match event:\n        case [a, *_]: taken(a)", True),
        ("match event:\n        case {'key': [_, a]}: taken(a)", True),
        ("a = b; b = c; c = event; taken(a)", True),
        ("a, b = event; taken(b)", True),
        ("a, b = event, 1; taken(a)", True),
        ("a, b = event, 1; taken(b)", False),
        ("a = 1; taken(a)", False),
        ("a: int; taken(a)", False),
        ("with event: taken(0)", False),
        ("taken", False),
        ("taken()", False),
    ],
)
def test_a_name_that_is_bound_to_a_value_holds_it(body, goes_on):
    source = f"def step(event):\n    {body}\ndef taken(value): ..."
    way = Journey.of(code := Code({"one": ast.parse(source)}, 0), code.find("step")[0], ["event"])
    assert goes_on == ("one.taken" in map(str, way.held))


@pytest.mark.parametrize(
    ("expression", "tests"),
    [
        ("a is None", 1),
        ("a is not None is not b", 1),
        ("a == None", 0),
        ("a is b", 0),
        ("not a", 0),
    ],
)
def test_what_counts_as_a_test_for_none(expression, tests):
    assert tests == none_tests(ast.parse(expression, mode="eval").body)
