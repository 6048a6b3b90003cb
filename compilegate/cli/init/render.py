"""A proposed workload file: its values, and how it is written as commented YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.adapters.yaml_document import plain_value

READ, ASSUMED, OPEN = "read", "assumed", "open"
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*")


@dataclass(frozen=True)
class Value:
    """A value with what the file says of it; ``origin`` is READ, ASSUMED or OPEN."""

    value: Any
    note: str = ""
    origin: str = READ


Section = dict[str, Value]
Proposal = Mapping[str, Value | Section]


def document_of(
    proposal: Proposal, *, stand_ins: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The plain document; ``stand_ins`` by dotted path replace what is still open."""
    return {key: _plain(item, key, stand_ins or {}) for key, item in proposal.items()}


def _plain(item: Any, path: str, stand_ins: Mapping[str, Any]) -> Any:
    if isinstance(item, Value):
        if item.origin == OPEN and path in stand_ins:
            return stand_ins[path]
        return _plain(item.value, path, stand_ins)
    if isinstance(item, dict):
        return {key: _plain(inner, f"{path}.{key}", stand_ins) for key, inner in item.items()}
    if isinstance(item, list):
        return [_plain(inner, path, stand_ins) for inner in item]
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
