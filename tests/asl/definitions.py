"""The state machines as synthesised, and the JSONata expressions in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.stacks.template import load, shipped_assembly

ALWAYS = ("context", "input")
# The states that have a result, and the two fields that may read it.
WITH_RESULT = ("Map", "Parallel", "Task")
AFTER_RESULT = ("Assign", "Output")


@dataclass(frozen=True)
class Expression:
    """One expression; ``readable`` are the parts of ``$states`` that exist where it stands."""

    machine: str
    state: str
    field: str
    text: str
    readable: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """What evaluations are filed under; an expression may stand in a state twice."""
        return self.machine, self.state, self.text


def synthesised() -> dict[str, dict[str, Any]]:
    """The definition of each state machine, ``evaluate`` and ``train``, as in the template."""
    template = load(shipped_assembly())
    return {name: template.definition(name) for name in template.machines()}


def states(definition: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every state with its name, those inside Maps included."""
    for name, state in definition["States"].items():
        yield name, state
        if "ItemProcessor" in state:
            yield from states(state["ItemProcessor"])


def expressions(machine: str, definition: dict[str, Any]) -> Iterator[Expression]:
    """Every expression of a state machine, in the order of the document."""
    for name, state in states(definition):
        for field, value in state.items():
            if field != "ItemProcessor":
                yield from _in_field(machine, name, state["Type"], field, value)


def keys_of(definitions: Mapping[str, dict[str, Any]]) -> set[tuple[str, str, str]]:
    """The key of every expression."""
    return {one.key for item in definitions.items() for one in expressions(*item)}


def _in_field(machine: str, state: str, kind: str, field: str, value: Any) -> Iterator[Expression]:
    readable: tuple[str, ...] = ALWAYS
    if kind in WITH_RESULT and field in AFTER_RESULT:
        readable = (*ALWAYS, "result")
    elif field == "Catch":
        readable = (*ALWAYS, "errorOutput")
    for text in texts(value):
        yield Expression(machine, state, field, text, readable)


def texts(value: Any) -> Iterator[str]:
    """The text of every expression in a value, however deep."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str) and value.startswith("{%") and value.endswith("%}"):
        yield value[2:-2].strip()
