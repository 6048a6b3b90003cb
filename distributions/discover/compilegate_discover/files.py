"""Writes workload files, and updates the lines of them that are still as they were written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compilegate.adapters.yaml_document import YamlDocument
from compilegate.domain.errors import printable
from compilegate_discover.proposal import MARKS
from compilegate_init.proposal import OPEN, Value, scalar

# A line of a file with the dotted path of its value, empty where it has none.
Line = tuple[str, str]


def lines_of(proposal: Mapping[str, Any], path: str = "", indent: str = "") -> Iterator[Line]:
    """The lines of a file, each value with where it is from beside it."""
    for key, item in proposal.items():
        inner = f"{path}.{key}" if path else key
        value = item.value if isinstance(item, Value) else item
        start = f"{indent}{scalar(key)}:"
        if isinstance(value, Mapping) and value:
            yield "", start
            yield from lines_of(value, inner, f"{indent}  ")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield "", start
            for row in value:
                pairs = ", ".join(f"{name}: {scalar(text)}" for name, text in row.items())
                yield "", f"{indent}  - {{{pairs}}}"
        else:
            yield inner, f"{start} {_written(value)}{_comment(item)}"


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(scalar(one) for one in value)}]"
    return "{}" if value == {} else scalar(value)


def _comment(item: Any) -> str:
    if not isinstance(item, Value):
        return ""
    note = printable(item.note)
    return f"  # {note}" if item.origin == OPEN else f"  # {MARKS[item.origin]}: {note}"


def text_of(lines: Sequence[Line]) -> str:
    """The file."""
    return "".join(f"{line}\n" for _, line in lines)


def updated(
    text: str, last: Mapping[str, str], lines: Sequence[Line]
) -> tuple[str, dict[str, str], list[str]]:
    """The file with its own lines as they are now, all lines ever written, and a person's paths.

    ``last`` are the lines that earlier runs wrote, by path. A line that is not exactly as it was
    written is a person's and stays, and what a person removed is not written again. A value that
    is new comes after the line of its own that is before it. Raises InvalidInputError or
    yaml.YAMLError for a file that is no YAML any more.
    """
    document, now = YamlDocument(text), text.split("\n")
    own = dict(last)  # a line that is not there any more was written once
    of_person: list[str] = []
    after: int | None = None
    section = ""
    for path, line in lines:
        if not path:
            continue
        place = document.place(path)
        parent = path.rpartition(".")[0]
        after, section = (after if parent == section else None), parent
        if place is None and path not in last and after is not None:
            now[after] += f"\n{line}"
            own[path] = line
        elif place is not None and now[place.line - 1].rstrip("\r") == last.get(path):
            after = place.line - 1
            own[path] = line
            now[after] = line + "\r" * now[after].endswith("\r")
        else:
            of_person.append(path)
    fresh = "\n".join(now)
    YamlDocument(fresh)
    return fresh, own, of_person
