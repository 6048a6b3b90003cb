"""What the ledger stores: one frozen type per kind of entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from compilegate.domain.errors import InvalidInputError, UnreadableRecordError, shown
from compilegate.domain.outside import BROKEN, is_figure, shorten

# The last second that Python can show as a time, 9999-12-31T23:59:59Z.
LAST_SECOND = 253_402_300_799


def known_fields(kind: type, document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass among those of a document of any release."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in document.items() if name in names}


@dataclass(frozen=True)
class LedgerRecord:
    """Base of every kind of entry; ``at`` is when it was written, times are epoch seconds.

    ``stored_as`` has the fields that entries hold under another name.
    """

    stored_as: ClassVar[Mapping[str, str]] = {}

    @property
    def kind(self) -> str:
        """Which kind of entry it is: a constant of the class."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """Sort key of the entry, which the ledger takes once."""
        raise NotImplementedError

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {
            "kind": self.kind,
            **{
                self.stored_as.get(name, name): list(value) if isinstance(value, tuple) else value
                for name, value in asdict(self).items()
            },
        }

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read an entry of any release.

        A field that it lacks, or has as null, takes its default; fields of a later release are
        left out. Raises UnreadableRecordError where a field without a default is missing, and where
        one is of another type; ``ledger.read_as`` adds what to do about it.
        """
        try:
            return cls._read(entry)
        except InvalidInputError as error:
            why = str(error)
        except BROKEN as error:
            why = f"{type(error).__name__}: {shorten(str(error))}"
        raise UnreadableRecordError(
            f"the ledger's entry of kind {shown(entry.get('kind'))}, written at "
            f"{shown(entry.get('at'))}, is damaged: {why}"
        )

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """As ``from_entry``; raises one of BROKEN, or InvalidInputError."""
        values = {}
        for one in fields(cls):
            name = cls.stored_as.get(one.name, one.name)
            optional = one.default is not MISSING or one.default_factory is not MISSING
            if optional and entry.get(name) is None:
                continue
            value = entry[name]
            values[one.name] = tuple(value) if isinstance(value, list) else value
            if not _fits(values[one.name], one.name, cls):
                raise ValueError(f"{name} is {shown(value)}")
        return cls(**values)


_hints = cache(get_type_hints)


def _fits(value: object, name: str, record: type) -> bool:
    """Whether a value is of its field's type; a whole number may stand for any."""
    is_time = name == "at" or name.endswith("_at")
    if is_time and isinstance(value, int | float) and not 0 <= value <= LAST_SECOND:
        return False
    hint = _hints(record)[name]
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return any(_is(value, get_origin(option) or option) for option in options)


def _is(value: object, kind: Any) -> bool:
    if kind in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return is_figure(value) and (whole or (isinstance(value, kind) and kind is float))
    return isinstance(value, kind)
