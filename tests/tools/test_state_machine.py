"""A drawing of a state machine has every state and every way of the definition."""

import re

import pytest

from compilegate.domain.naming import MACHINES
from tests.stacks.asl import build, edges
from tools.state_machine import definition, drawn

ARROW = re.compile(r"^ *(\w+) (?:-->(?:\|.*\|)?|-\. .* \.->) (\w+)$", re.MULTILINE)
STATE = re.compile(r"^ *(\w+)[\[({]", re.MULTILINE)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_drawing_has_every_state_and_every_way(machine: str) -> None:
    chart = drawn(definition(machine))
    states = build(definition(machine))
    ways = [(name, then) for name, state in states.items() for then in edges(state)]

    assert sorted(states) == sorted(STATE.findall(chart))
    assert sorted(ways) == sorted(ARROW.findall(chart))
