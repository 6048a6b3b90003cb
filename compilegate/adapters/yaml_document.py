"""The YAML document of a file in plain Python, with the line of every value.

Plain scalars are YAML 1.1's words and decimal numbers only. Dates stay text, and ``5e-5`` is a
number as YAML 1.2 has it. Numbers that YAML 1.1 reads to base 2, 8, 16 or 60 (``0755``, ``6:30``)
are refused, because in a workload file they are mistakes.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from compilegate.domain.errors import InvalidInputError
from compilegate.place import PROJECT

SCRIPT, NOTEBOOK = ".py", ".ipynb"
STANDARD_INPUT = "-"
EXAMPLE = PROJECT / "workloads" / "article-bert.yaml"
# Thousands of past results fit; no text in a file this size takes long to read.
MOST_BYTES = 256 * 1024

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# A workload file has about a hundred values, four deep.
MOST_VALUES = 20_000
DEEPEST = 20
MERGE = "<<"
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_INDEX = re.compile(r"\[(\d+)\]")
_WORDS: dict[str, Any] = {"": None, "~": None} | {
    form: value
    for value, words in (
        (None, ("null",)),
        (True, ("true", "yes", "on")),
        (False, ("false", "no", "off")),
        (math.inf, (".inf", "+.inf")),
        (-math.inf, ("-.inf",)),
        (math.nan, (".nan", ".NaN")),
    )
    for word in words
    for form in (word, word.title(), word.upper())
}
_STARTS_A_NUMBER = frozenset("0123456789+-.")
_WHOLE = re.compile(r"[-+]?\d+(_\d+)*")
_DECIMAL = re.compile(r"[-+]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_OTHER_BASE = re.compile(
    r"[-+]?(0[\d_]+|0[bB][01_]+|0[xX][\da-fA-F_]+|\d[\d_]*(:[0-5]?\d)+(\.\d*)?)"
)


def load_yaml(path: Path) -> object:
    """The file's document. Raises InvalidInputError for what is not one YAML document."""
    return read_yaml(path).value


def read_yaml(path: Path) -> YamlDocument:
    """As ``load_yaml``, with where everything stands."""
    text = _text(path)
    try:
        return YamlDocument(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or error).split("\n", maxsplit=1)[0]
        if not mark:
            fix = "write it as `key: value` lines"
            raise InvalidInputError(f"is not YAML: {problem}", fix=fix) from error
        lines = text.splitlines()
        raise InvalidInputError(
            f"is not YAML: {problem}",
            field=f"line {mark.line + 1}, column {mark.column + 1}",
            value=lines[mark.line].strip() if mark.line < len(lines) else "",
            fix="correct the line, or the one above it; tabs cannot indent, "
            "and text with `: ` or `#` needs quotes",
        ) from error


def _text(path: Path) -> str:
    """The file's text. Raises InvalidInputError that says what a file is that holds no YAML."""
    if str(path) == STANDARD_INPUT:
        return _decoded(sys.stdin.buffer.read(MOST_BYTES + 1))
    if not path.is_file():
        other = path.with_suffix({".yaml": ".yml", ".yml": ".yaml"}.get(path.suffix, path.suffix))
        if not path.exists() and other.is_file():
            raise InvalidInputError("does not exist", fix=f"name {other}, which does")
        problem = "is not a plain file" if path.exists() else "does not exist"
        here = Path.cwd()
        # A file that is there, in a checkout as in an installed package.
        example = EXAMPLE.relative_to(here) if EXAMPLE.is_relative_to(here) else EXAMPLE
        raise InvalidInputError(
            "is a folder" if path.is_dir() else problem,
            fix=f"name a workload file, such as {example}, or write one from a training "
            "script: `compilegate init train.py`",
        )
    if path.suffix == NOTEBOOK:
        raise InvalidInputError(
            "is a notebook, not a workload file",
            fix=f"convert it first: `jupyter nbconvert --to script {path}`; then `compilegate "
            "init` writes the script's workload file",
        )
    if path.suffix == SCRIPT:
        raise InvalidInputError(
            "is a script, not a workload file",
            fix=f"`compilegate init {path}` writes its workload file; "
            f"`compilegate doctor {path}` examines the script",
        )
    try:
        with path.open("rb") as file:
            return _decoded(file.read(MOST_BYTES + 1))
    except OSError as error:
        raise InvalidInputError(
            f"cannot be read: {error}", fix="correct its permissions"
        ) from error


def _decoded(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        limit = f"{MOST_BYTES // 1024} KiB"
        raise InvalidInputError(f"is larger than {limit}: not a workload file", fix="shorten it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"cannot be read as UTF-8 text: {error}", fix="save it as UTF-8"
        ) from error


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


@dataclass(frozen=True)
class Place:
    """Where a value stands, lines counted from 1; ``written`` is its text if it is unquoted."""

    line: int
    written: str | None


class YamlDocument:
    """``value`` is the document in plain Python. Raises InvalidInputError or yaml.YAMLError.

    It is made of the parser's events, not of the library's nodes: those are composed without a
    bound on their depth, and do not say where an alias stands.
    """

    def __init__(self, text: str) -> None:
        self._lines = [*text.splitlines(), ""]  # an empty value may stand behind the last one
        self._places: dict[tuple[int, str | int], Place] = {}
        # What each anchor stands for, and how many values that is.
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        self.value: Any = None
        self._events: Any = yaml.parse(text, LOADER)
        for event in self._events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            if isinstance(event, yaml.NodeEvent):
                self.value = self._read(event, "", 0)
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise InvalidInputError(
                    "is more than one document: another one begins",
                    line=_line(event),
                    fix="keep one workload per file, without `---` between two",
                )

    def place(self, field: str) -> Place | None:
        """Where the field of a dotted path such as ``candidates[0].name`` stands."""
        return self._find(self.value, _INDEX.sub(r".\1", field))

    def comment(self, field: str) -> str:
        """The comment at the end of the field's line, empty where there is none."""
        place = self.place(field)
        return self._lines[place.line - 1].partition(" # ")[2].strip() if place else ""

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

    def _read(self, event: Any, path: str, depth: int) -> Any:
        """The value that begins with ``event``; ``path`` is dotted, ``depth`` what it lies in."""
        before, size, value = self._count, 1, None
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                problem = f"is an alias of `{event.anchor}`, which is not complete before it"
                raise _refused(event, path, problem, "write out what it stands for")
            value, size = self._anchors[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            _check_text_tag(event, path)
            try:
                value = plain_value(event.value) if _is_plain(event) else event.value
            except ValueError as error:
                fix = "write it in decimal, or in quotes if it is text"
                raise _refused(event, path, str(error), fix) from None
        elif event.tag not in (None, "!"):
            raise _refused(event, path, f"has the tag {event.tag}", "write it without a tag")
        elif depth == DEEPEST:
            raise _refused(event, path, "is not a workload: nested too deeply", "flatten it")
        self._count += size
        if self._count > MOST_VALUES:
            raise InvalidInputError(
                f"is not a workload: it expands to more than {MOST_VALUES:,} values",
                field="document",
                line=_line(event),
                fix="shorten it",
            )
        if isinstance(event, yaml.CollectionStartEvent):
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            value = (self._mapping if is_mapping else self._list)(path, depth + 1)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._count - before)
        return value

    def _list(self, path: str, depth: int) -> list[Any]:
        value: list[Any] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            self._places[id(value), len(value)] = _place(event)
            value.append(self._read(event, f"{path}[{len(value)}]", depth))
        return value

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        merged: Any = None
        at: Any = None
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                raise _refused(event, path, "is a key that is not text", "write `key: value`")
            _check_text_tag(event, path)
            key = event.value
            inner = ".".join(part for part in (path, key) if part)
            if key in value or (key == MERGE and merged is not None):
                raise InvalidInputError(
                    f"occurs twice, the second time on line {_line(event)}",
                    field=inner,
                    fix="keep one of the two",
                )
            first = next(self._events)
            if key == MERGE:
                merged, at = self._read(first, inner, depth), first
            else:
                self._places[id(value), key] = _place(first)
                value[key] = self._read(first, inner, depth)
        if merged is not None:
            self._merge(merged, value, at)
        return value

    def _merge(self, merged: Any, into: dict[str, Any], event: Any) -> None:
        """YAML's ``<<``: the mapping's own keys win, then the first that is merged."""
        sources = merged if isinstance(merged, list) else [merged]
        if not all(isinstance(source, dict) for source in sources):
            problem = "merges something other than a mapping"
            raise _refused(event, "", problem, "merge mappings only")
        for source in sources:
            for key in [key for key in source if key not in into]:
                into[key] = source[key]
                self._places[id(into), key] = self._places[id(source), key]


def _check_text_tag(event: Any, path: str) -> None:
    if event.tag not in _TEXT_TAGS:
        raise _refused(event, path, f"has the tag {event.tag}", "write the value without a tag")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _is_plain(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.tag is None and bool(event.implicit[0])


def _place(event: Any) -> Place:
    return Place(_line(event), event.value if _is_plain(event) else None)


def _refused(event: Any, path: str, problem: str, fix: str) -> InvalidInputError:
    written = event.value if isinstance(event, yaml.ScalarEvent) else None
    return InvalidInputError(
        problem, field=path or "document", line=_line(event), written=written, fix=fix
    )
