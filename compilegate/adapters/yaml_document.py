"""The value of a plain YAML scalar: YAML 1.1's words and decimal numbers only.

Dates stay text, and ``5e-5`` is a number as YAML 1.2 has it. Numbers that YAML 1.1 reads to
base 2, 8, 16 or 60 (``0755``, ``6:30``) are refused, because in a workload file they are mistakes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import yaml

from compilegate.domain.errors import InvalidInputError

_NULLS = ("", "~", "null", "Null", "NULL")
_INFINITE = (".inf", ".Inf", ".INF")
_NOT_A_NUMBER = (".nan", ".NaN", ".NAN")


def _cased(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS: dict[str, Any] = {
    **dict.fromkeys(_NULLS),
    **dict.fromkeys(_cased("true", "yes", "on"), True),
    **dict.fromkeys(_cased("false", "no", "off"), False),
    **dict.fromkeys((*_INFINITE, *(f"+{word}" for word in _INFINITE)), math.inf),
    **dict.fromkeys((f"-{word}" for word in _INFINITE), -math.inf),
    **dict.fromkeys(_NOT_A_NUMBER, math.nan),
}
_STARTS_A_NUMBER = frozenset("0123456789+-.")
_WHOLE = re.compile(r"[-+]?\d+(_\d+)*")
_DECIMAL = re.compile(r"[-+]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_OTHER_BASE = re.compile(
    r"[-+]?(0[\d_]+|0[bB][01_]+|0[xX][\da-fA-F_]+|\d[\d_]*(:[0-5]?\d)+(\.\d*)?)"
)


def plain_value(text: str) -> Any:
    """The value of an unquoted scalar. Raises ValueError saying what is wrong with a number."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS_A_NUMBER:
        return text
    if _OTHER_BASE.fullmatch(text):
        raise ValueError("is read by YAML as a number in a base other than ten")
    if _WHOLE.fullmatch(text):
        try:
            return int(text)
        except ValueError:
            raise ValueError("has too many digits") from None
    return float(text) if _DECIMAL.fullmatch(text) else text


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# A workload file has about a hundred values, four deep.
MOST_VALUES = 20_000
DEEPEST = 20
MERGE = "<<"
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True)
class Place:
    """Where a value stands, lines counted from 1; ``written`` is its text if it is unquoted."""

    line: int
    written: str | None


@dataclass
class _Open:
    """A list or mapping still being read; ``key`` waits for its value, ``before`` were read."""

    value: Any
    path: str
    anchor: str | None
    before: int
    key: str | None = None
    merged: Any = None


class YamlDocument:
    """``value`` is the document in plain Python. Raises InvalidInputError or yaml.YAMLError."""

    def __init__(self, text: str) -> None:
        self.value: Any = None
        self._lines = text.splitlines()
        self._places: dict[tuple[int, str | int], Place] = {}
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: list[_Open] = []
        self._count = self._documents = 0
        parser = LOADER(text)
        try:
            self._read(parser)
        finally:
            parser.dispose()

    def place(self, field: str) -> Place | None:
        """Where the field of a dotted path such as ``candidates[0].name`` stands."""
        return self._find(self.value, _INDEX.sub(r".\1", field))

    def comment(self, field: str) -> str:
        """The comment at the end of the field's line, empty where there is none."""
        place = self.place(field)
        return "" if place is None else self._lines[place.line - 1].partition(" # ")[2].strip()

    def _find(self, inside: Any, path: str) -> Place | None:
        if not isinstance(inside, dict | list):
            return None
        for key in inside if isinstance(inside, dict) else range(len(inside)):
            if path == str(key):
                return self._places.get((id(inside), key))
            if path.startswith(f"{key}."):  # a key may hold a dot itself: go on when in vain
                line = self._find(inside[key], path.removeprefix(f"{key}."))
                if line:
                    return line
        return None

    def _read(self, parser: Any) -> None:
        steps = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._next_document,
        }
        while True:
            event = parser.get_event()
            step = steps.get(type(event))
            if step:
                step(event)
            elif isinstance(event, yaml.StreamEndEvent):
                return

    def _next_document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise InvalidInputError(
                "is more than one document: another one begins",
                line=event.start_mark.line + 1,
                fix="keep one workload per file, without `---` between two",
            )

    def _scalar(self, event: Any) -> None:
        if event.tag not in _TEXT_TAGS:
            raise self._refused(event, f"has the tag {event.tag}", "write the value without a tag")
        if self._open and self._open[-1].key is None and isinstance(self._open[-1].value, dict):
            self._key(self._open[-1], event)
            return
        plain = event.tag is None and event.implicit[0]
        try:
            value = plain_value(event.value) if plain else event.value
        except ValueError as error:
            fix = "write it in decimal, or in quotes if it is text"
            raise self._refused(event, str(error), fix) from None
        self._add(value, 1, event, event.value if plain else None)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)

    def _key(self, parent: _Open, event: Any) -> None:
        parent.key = event.value
        merges = event.value == MERGE and event.implicit[0]
        if event.value in parent.value or (merges and parent.merged is not None):
            raise InvalidInputError(
                f"occurs twice, the second time on line {event.start_mark.line + 1}",
                field=self._path(),
                fix="keep one of the two",
            )

    def _start(self, event: Any) -> None:
        if event.tag not in (None, "!"):
            raise self._refused(event, f"has the tag {event.tag}", "write it without a tag")
        if len(self._open) >= DEEPEST:
            raise self._refused(event, "is not a workload: nested too deeply", "flatten it")
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        opened = _Open(value, self._path(), event.anchor, self._count)
        self._add(value, 1, event)
        self._open.append(opened)

    def _end(self, event: Any) -> None:
        ended = self._open.pop()
        if ended.merged is not None:
            self._merge(ended, event)
        if ended.anchor:
            self._anchors[ended.anchor] = (ended.value, self._count - ended.before)

    def _merge(self, into: _Open, event: Any) -> None:
        """YAML's ``<<``: the mapping's own keys win, then the first that is merged."""
        sources = into.merged if isinstance(into.merged, list) else [into.merged]
        if not all(isinstance(source, dict) for source in sources):
            raise self._refused(
                event, "merges something other than a mapping", "merge mappings only"
            )
        for source in sources:
            for key in source.keys() - into.value.keys():
                into.value[key] = source[key]
                place = self._places.get((id(source), key))
                if place:
                    self._places[id(into.value), key] = place

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise self._refused(
                event,
                f"is an alias of `{event.anchor}`, which is not complete before it",
                "write out what it stands for",
            )
        value, size = self._anchors[event.anchor]
        self._add(value, size, event)

    def _add(self, value: Any, size: int, event: Any, written: str | None = None) -> None:
        self._count += size
        if self._count > MOST_VALUES:
            raise InvalidInputError(
                f"is not a workload: it expands to more than {MOST_VALUES:,} values",
                field="document",
                line=event.start_mark.line + 1,
                fix="shorten it",
            )
        if not self._open:
            self.value = value
            return
        parent = self._open[-1]
        place = Place(event.start_mark.line + 1, written)
        if isinstance(parent.value, list):
            self._places[id(parent.value), len(parent.value)] = place
            parent.value.append(value)
        elif parent.key is None:
            raise self._refused(event, "is a key that is not text", "write `key: value`")
        elif parent.key == MERGE:
            parent.merged, parent.key = value, None
        else:
            self._places[id(parent.value), parent.key] = place
            parent.value[parent.key] = value
            parent.key = None

    def _path(self) -> str:
        """Dotted path of what is read next."""
        if not self._open:
            return ""
        parent = self._open[-1]
        if isinstance(parent.value, list):
            return f"{parent.path}[{len(parent.value)}]"
        return ".".join(part for part in (parent.path, parent.key) if part)

    def _refused(self, event: Any, problem: str, fix: str) -> InvalidInputError:
        written = event.value if isinstance(event, yaml.ScalarEvent) else None
        return InvalidInputError(
            problem,
            field=self._path() or "document",
            line=event.start_mark.line + 1,
            written=written,
            fix=fix,
        )
