"""Evaluations of expressions, of each expression in each state a few of different shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of one expression in one state, each of another shape.
MOST = 3
Steps = tuple[str, ...]
Key = tuple[str, str, str]  # state machine, state, expression
# A variable with the names behind it; not a function that is called.
_NAMES = re.compile(r"\$([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)(?!\w|\()")


@dataclass(frozen=True)
class Evaluation:
    """One evaluation; ``outcome`` is ``{value}`` or ``{error}``."""

    machine: str
    state: str
    expression: str
    states: Mapping[str, Any]
    variables: Mapping[str, Any]
    outcome: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """What the recording belongs to."""
        return self.machine, self.state, self.expression

    @property
    def question(self) -> dict[str, Any]:
        """What ``evaluate.js`` and ``in_emulator.py`` take."""
        return {
            "expression": self.expression,
            "states": self.states,
            "variables": self.variables,
        }


class Recordings:
    """What is kept of all evaluations: the parts of the scope that the expression names."""

    def __init__(self) -> None:
        self.by_key: dict[Key, list[Evaluation]] = {}

    def add(self, key: Key, states: Any, variables: Any, outcome: Mapping[str, Any]) -> None:
        """Keep it unless there are enough, or one of its shape."""
        kept = self.by_key.setdefault(key, [])
        if len(kept) < MOST:
            names = references(key[2])
            seen = _part({"states": states}, names).get("states", {})
            one = Evaluation(*key, seen, _part(variables, names), outcome)
            if all(shape(vars(one)) != shape(vars(other)) for other in kept):
                kept.append(one)


def references(expression: str) -> set[Steps]:
    """The variables that an expression names, each with the names behind it."""
    return {
        (name, *(part for part in steps.split(".") if part))
        for name, steps in _NAMES.findall(expression)
    }


def _part(value: Any, paths: set[Steps]) -> Any:
    if () in paths or not isinstance(value, Mapping):
        return value
    names = {path[0] for path in paths}
    return {
        name: _part(item, {path[1:] for path in paths if path[0] == name})
        for name, item in value.items()
        if name in names
    }


def shape(value: Any) -> Any:
    """The types of a document: names of objects are kept, of lists only the first item."""
    if isinstance(value, Mapping):
        return {name: shape(item) for name, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return type(value).__name__ if not isinstance(value, bool) else value
