"""Inputs that no execution has had: recorded ones with a part replaced, or taken away."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.asl.recordings import Evaluation, Steps, references

_GONE = object()
REPLACEMENTS: tuple[Any, ...] = (
    _GONE, None, True, False, 0, -1, 2.5, 1e-7, 0.1 + 0.2, 123_456_789_012_345,
    "", "7", "naïve “quoted” \"'\\ 😀\n\tend", '{"a": [1, 2.0, null]}', "x" * 3000,
    [], [1], [None], ["a", "b"], [[1], [2]], {}, {"a": 1}, [{"a": 1}, {"b": None}],
)  # fmt: skip
# $states always has these, as objects with these names; what stands below may be anything.
FIXED = (("states",), ("states", "context"), ("states", "context", "Execution"))


def variations(evaluations: Iterable[Evaluation]) -> Iterator[dict[str, Any]]:
    """Questions for the evaluators: each text once, each part it names replaced by everything."""
    seen = set()
    for one in evaluations:
        if one.expression not in seen:
            seen.add(one.expression)
            scope = {**one.variables, "states": one.states}
            for place in sorted(_places(one.expression)):
                for changed in _replaced(scope, place):
                    states = changed.pop("states")
                    yield {"expression": one.expression, "states": states, "variables": changed}


def _places(expression: str) -> set[Steps]:
    every = {path[:end] for path in references(expression) for end in range(1, len(path) + 1)}
    return every - set(FIXED)


def _replaced(scope: Mapping[str, Any], place: Steps) -> Iterator[dict[str, Any]]:
    for value in REPLACEMENTS:
        changed = copy.deepcopy(dict(scope))
        holder: Any = changed
        for name in place[:-1]:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(holder, dict):
            return
        if value is not _GONE:
            holder[place[-1]] = value
        elif place != ("states", "input"):
            holder.pop(place[-1], None)
        yield changed
