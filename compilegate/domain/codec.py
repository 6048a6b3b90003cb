"""One codec for every document: a frozen dataclass as JSON values, and back, by its annotations.

A field is the key of its name, or of ``stored_as``; a tuple is an array, an enum its value, a
nested dataclass an object. Of several types that a field may have, the first that fits is read; a
field that is no argument of its class has one value, by which the class is named.

What is read may come of a later release: unknown keys are left out. A key that is missing or null
takes the field's default. A class that a document holds in another form has ``as_document`` and
``from_document``, which are used instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from compilegate.domain.errors import shown
from compilegate.domain.outside import is_figure

T = TypeVar("T")
Reader = Callable[[Any, str], Any]  # of a value and its place
# Types of the values that a field takes as they are; numbers have a largest size.
PLAIN = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}
# Metadata of a field that a document leaves out where it has its default.
OMITTED = {"omitted": True}
# Digits of a figure in a decision: libraries of other systems round the last ones otherwise.
SIGNIFICANT_DIGITS = 10
_hints = cache(get_type_hints)


class DocumentError(ValueError):
    """A document is not of its type; the message names the place."""


def stored_as(key: str) -> dict[str, str]:
    """Metadata of a field whose key is not its name."""
    return {"key": key}


def key_of(declared: Field[Any]) -> str:
    """The document's key of a field."""
    return str(declared.metadata.get("key", declared.name))


def write(value: object) -> Any:
    """The JSON values of a dataclass, or of what its fields hold."""
    if hasattr(value, "as_document"):
        return value.as_document()
    if is_dataclass(value):
        kept = ((one, getattr(value, one.name)) for one in fields(value))
        return {
            key_of(one): write(item)
            for one, item in kept
            if "omitted" not in one.metadata or item != one.default
        }
    if isinstance(value, Mapping):
        return {key: write(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [write(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def read(kind: type[T], document: object, place: str = "") -> T:
    """The value of a dataclass that a document holds; raises DocumentError."""
    return cast("T", _reader(kind)(document, place))


def _reader(kind: Any) -> Reader:
    """What reads the values of a type; that of a field is made once, as a fleet has many rows."""
    origin, options = get_origin(kind), get_args(kind)
    if origin is UnionType:
        readers = {one: _reader(one) for one in options if one is not NoneType}
        return partial(_read_one_of, readers, NoneType in options)
    if origin is not None:
        kinds = [one for one in options if one is not ...]
        return partial(_read_items, origin, [_reader(one) for one in kinds], kinds != [*options])
    if hasattr(kind, "from_document"):
        return cast("Reader", kind.from_document)
    if is_dataclass(kind):
        return partial(_read_fields, kind)
    return _read_anything if kind is Any else partial(_read_plain, kind)


def _read_anything(value: Any, _place: str) -> Any:
    return value


def _read_plain(kind: Any, value: Any, place: str) -> Any:
    if not _fits(kind, value):
        raise _refused(value, place)
    return kind(value) if issubclass(kind, Enum) else value


def _read_items(
    origin: Any, readers: list[Reader], of_any_length: bool, value: Any, place: str
) -> Any:
    """A tuple of any or of a fixed length, or a mapping from text."""
    if origin is tuple and isinstance(value, list | tuple):
        expected = readers * len(value) if of_any_length else readers
        if len(expected) == len(value):
            pairs = enumerate(zip(expected, value, strict=True))
            return tuple(reader(item, f"{place}[{index}]") for index, (reader, item) in pairs)
    if origin is Mapping and isinstance(value, Mapping):
        if readers[1] is _read_anything:
            return dict(value)
        return {key: readers[1](item, _inner(place, key)) for key, item in value.items()}
    raise _refused(value, place)


@dataclass(frozen=True)
class _FieldReader:
    """How a field of a dataclass is read; values of ``plain`` types are taken as they are."""

    field: Field[Any]
    key: str
    optional: bool
    plain: tuple[type, ...]
    read: Reader


@cache
def _readers(kind: Any) -> Sequence[_FieldReader]:
    """Made once for a class: a fleet has ten thousand rows."""
    readers = []
    for declared in fields(kind):
        hint = _hints(kind)[declared.name]
        options = get_args(hint) if get_origin(hint) is UnionType else (hint,)
        first, *others = [option for option in options if option is not NoneType]
        readers.append(_FieldReader(
            declared, key_of(declared),
            optional=declared.default is not MISSING or declared.default_factory is not MISSING,
            plain=() if others else PLAIN.get(first, ()),
            read=_reader(hint),
        ))  # fmt: skip
    return readers


def _read_fields(kind: Any, document: Any, place: str) -> Any:
    if not isinstance(document, Mapping):
        raise _refused(document, place)
    arguments = {}
    for reader in _readers(kind):
        key, value = reader.key, document.get(reader.key)
        if not reader.field.init:
            if value != reader.field.default:
                raise _refused(value, _inner(place, key))
        elif type(value) in reader.plain and (type(value) in (str, bool) or is_figure(value)):
            arguments[reader.field.name] = value
        elif value is not None or not reader.optional:
            if key not in document:
                raise DocumentError(f"{_inner(place, key)} is missing")
            arguments[reader.field.name] = reader.read(value, _inner(place, key))
    return kind(**arguments)


def _read_one_of(readers: Mapping[Any, Reader], may_be_null: bool, value: Any, place: str) -> Any:
    if value is None and may_be_null:
        return None
    *others, last = readers.values()
    if others:
        named = [reader for kind, reader in readers.items() if _is_named(kind, value)]
        *others, last = named or readers.values()
    for reader in others:
        try:
            return reader(value, place)
        except DocumentError:
            continue
    return last(value, place)


def _is_named(kind: Any, value: Any) -> bool:
    """Whether a document names the class: by the fields that are no argument of it."""
    names = [one for one in fields(kind) if not one.init] if is_dataclass(kind) else []
    document = value if isinstance(value, Mapping) else {}
    return all(document.get(key_of(one)) == one.default for one in names)


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value is of a plain type; a whole number may stand for any."""
    if kind in (int, float):
        numbers = int if kind is int else int | float
        return isinstance(value, numbers) and not isinstance(value, bool) and is_figure(value)
    if issubclass(kind, Enum):
        return value in [one.value for one in kind]
    return isinstance(value, kind)


def _refused(value: object, place: str) -> DocumentError:
    return DocumentError(f"{place or 'the document'} is {shown(value)}")


def _inner(place: str, key: object) -> str:
    return f"{place}.{key}" if place else str(key)


def rounded(value: Any) -> Any:
    """The document with floats of ten significant digits; None for one that is not finite."""
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value
