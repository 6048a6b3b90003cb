"""A proposed workload file: its values, and how it is written as commented YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.adapters.workload_files import TO_DO
from compilegate.adapters.yaml_document import plain_value

READ, ASSUMED, OPEN = "read", "assumed", "open"
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*")


@dataclass(frozen=True)
class Value:
    """A value with what the file says of it; ``origin`` is READ, ASSUMED or OPEN.

    ``stand_in`` is in the place of an open value where a trial's price is estimated.
    """

    value: Any
    note: str = ""
    origin: str = READ
    stand_in: Any = TO_DO


Section = dict[str, Value]
Proposal = Mapping[str, Value | Section]


def assumed(value: Any, note: str) -> Value:
    """A value that is not the script's."""
    return Value(value, f"assumed; {note}", ASSUMED)


def to_write(note: str, stand_in: Any = TO_DO) -> Value:
    """A value that a person has to write."""
    return Value(TO_DO, note, OPEN, stand_in)


def document_of(item: Any, *, priced: bool = False) -> Any:
    """The plain document, for an estimate of the price with what stands in for open values."""
    if isinstance(item, Value):
        open_ = priced and item.origin == OPEN
        return item.stand_in if open_ else document_of(item.value, priced=priced)
    if isinstance(item, Mapping):
        return {key: document_of(inner, priced=priced) for key, inner in item.items()}
    return item


def places(proposal: Any, origin: str, path: str = "") -> Iterator[str]:
    """The dotted paths of the values of one origin."""
    if isinstance(proposal, Value):
        if proposal.origin == origin:
            yield path
        proposal = proposal.value
    if isinstance(proposal, dict):
        for key, inner in proposal.items():
            yield from places(inner, origin, f"{path}.{key}" if path else key)


def render(proposal: Proposal, head: list[str]) -> str:
    """The file's text, ``head`` first."""
    lines = [*head]
    for key, item in proposal.items():
        lines += _lines(key, item, 0)
    return "\n".join(lines) + "\n"


def _lines(key: str, item: Any, depth: int) -> list[str]:
    indent, note = "  " * depth, item.note if isinstance(item, Value) else ""
    value = item.value if isinstance(item, Value) else item
    comment = f"  # {note}" if note else ""
    if isinstance(value, dict) and value:
        inner = [line for name, part in value.items() for line in _lines(name, part, depth + 1)]
        return [f"{indent}{key}:{comment}", *inner]
    if isinstance(value, list):
        return [f"{indent}{key}:", *(f"{indent}  - {_flow(part)}" for part in value)]
    text = "{}" if value == {} else scalar(value)
    return [f"{indent}{_key(key)}: {text}{comment}"]


def _flow(mapping: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{_key(key)}: {scalar(part)}" for key, part in mapping.items()) + "}"


def _key(key: str) -> str:
    return key if _PLAIN.fullmatch(key) else f"'{key}'"


def scalar(value: Any) -> str:
    """A plain value as YAML; text in quotes where it would be read otherwise."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        text = f"{value:.10g}"
        # To readers of YAML 1.1, 5e-05 is text.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    text = str(value)
    if _PLAIN.fullmatch(text) and ": " not in text and not text.endswith(":"):
        try:
            if plain_value(text) == text:
                return text
        except ValueError:
            pass  # a number to another base
    return "'" + text.replace("'", "''") + "'"
