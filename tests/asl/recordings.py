"""Recordings of evaluated expressions: chosen from what an emulator wrote, kept as data.

A file per state machine, a line per recording: ``{of, expression, states, variables, value}``, or
``error`` instead of ``value``; ``of`` are the states that recorded the same. The first line names
every state that was entered. A recording holds the parts of ``$states`` and of the variables that
its expression names, and no others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded"
# Of one expression in one state, each of another shape.
MOST_RECORDINGS = 3
MOST_CHARACTERS = 12_000
Steps = tuple[str, ...]
Key = tuple[str, str, str]  # state machine, state, expression; "" is the state itself
Recorded = dict[str, dict[str, list[dict[str, Any]]]]  # recordings by state and expression
# A variable with the names behind it; not a function that is called.
_NAMES = re.compile(r"\$([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)(?!\w|\()")


@dataclass(frozen=True)
class Evaluation:
    """One recorded evaluation; ``outcome`` is ``{value}`` or ``{error}``."""

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


def select(
    lines: Iterable[str], keys: Container[Key], replacements: Mapping[str, str]
) -> dict[str, Recorded]:
    """Recordings by state machine from the lines that an emulator wrote.

    ``keys`` are the states and expressions wanted. ``replacements`` are put in place of texts that
    only this machine has; each must be as long as its text, since expressions may cut texts off.
    """
    chosen: dict[str, Recorded] = {}
    for line in lines:
        document = json.loads(_replaced(line, replacements))
        machine = document["machine"].rpartition("-")[2]
        key = (machine, document["state"], document.get("expression", ""))
        if key in keys:
            state = chosen.setdefault(machine, {}).setdefault(document["state"], {})
            if "expression" in document:
                _add(state.setdefault(key[2], []), _recording(document))
    return chosen


def _replaced(line: str, replacements: Mapping[str, str]) -> str:
    for text, replacement in replacements.items():
        if len(text) != len(replacement):
            raise ValueError(f"{replacement} is not as long as {text}")
        line = line.replace(text, replacement)
    return line


def _recording(document: Mapping[str, Any]) -> dict[str, Any]:
    text = document["expression"]
    return {
        "states": reduced(text, {"states": document["states"]}).get("states", {}),
        "variables": reduced(text, document["variables"]),
        **{key: document[key] for key in ("value", "error") if key in document},
    }


def _add(kept: list[dict[str, Any]], recording: dict[str, Any]) -> None:
    """Keep a recording unless there are enough, or one of its shape."""
    too_long = kept and len(json.dumps(recording)) > MOST_CHARACTERS
    if len(kept) < MOST_RECORDINGS and not too_long:
        form = shape(recording)
        if all(form != shape(one) for one in kept):
            kept.append(recording)


def reduced(expression: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of the variables that an expression names."""
    return dict(_part(variables, references(expression)))


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


def joined(
    kept: Mapping[str, Recorded], new: Mapping[str, Recorded], keys: Container[Key]
) -> dict[str, Recorded]:
    """The kept recordings of what is in ``keys``, and the new ones of another shape."""
    result: dict[str, Recorded] = {}
    for recorded in (kept, new):
        for machine, states in recorded.items():
            wanted = {name: each for name, each in states.items() if (machine, name, "") in keys}
            for state, expressions in wanted.items():
                place = result.setdefault(machine, {}).setdefault(state, {})
                for text, recordings in expressions.items():
                    for one in recordings if (machine, state, text) in keys else ():
                        _add(place.setdefault(text, []), one)
    return result


def write(chosen: Mapping[str, Recorded], folder: Path = FOLDER) -> None:
    """One file per state machine, in it a line per recording, which names the states it is of."""
    folder.mkdir(exist_ok=True)
    for machine, recorded in chosen.items():
        lines: dict[str, list[str]] = {}
        for state in sorted(recorded):
            lines.setdefault("{}", []).append(state)
            for text, recordings in sorted(recorded[state].items()):
                for one in recordings:
                    # Names within a recording keep their order, which $string shows.
                    line = json.dumps({"expression": text, **one}, ensure_ascii=False)
                    lines.setdefault(line, []).append(state)
        with (folder / f"{machine}.jsonl").open("w", encoding="utf-8") as file:
            for line, states in lines.items():
                document = {"of": states, **json.loads(line)}
                print(json.dumps(document, ensure_ascii=False), file=file)


def read(folder: Path = FOLDER) -> dict[str, Recorded]:
    """Recordings by state machine."""
    return {path.stem: _read(path) for path in sorted(folder.glob("*.jsonl"))}


def _read(path: Path) -> Recorded:
    recorded: Recorded = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            states, text = one.pop("of"), one.pop("expression", None)
            for state in states:
                expressions = recorded.setdefault(state, {})
                if text is not None:
                    expressions.setdefault(text, []).append(one)
    return recorded


def evaluations(recorded: Mapping[str, Recorded]) -> Iterator[Evaluation]:
    """Every evaluation that was recorded."""
    for machine, states in recorded.items():
        for state, expressions in states.items():
            for text, recordings in expressions.items():
                for one in recordings:
                    outcome = {key: one[key] for key in ("value", "error") if key in one}
                    yield Evaluation(machine, state, text, one["states"], one["variables"], outcome)
