"""What the ledger stores: one frozen type per kind of entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from compilegate.domain import codec
from compilegate.domain.errors import InvalidInputError, UnreadableRecordError, shown
from compilegate.domain.outside import BROKEN, shorten

# The last second that Python can show as a time, 9999-12-31T23:59:59Z.
LAST_SECOND = 253_402_300_799
RESTORE = "restore the table's entry from its backup (point-in-time recovery)"

LedgerRecordT = TypeVar("LedgerRecordT", bound="LedgerRecord")


@dataclass(frozen=True)
class LedgerRecord:
    """Base of every kind of entry; ``at`` is when it was written, times are epoch seconds.

    ``key_form`` is the format of its sort keys, over its fields.
    """

    kind: ClassVar[str]
    key_form: ClassVar[str]

    @property
    def key(self) -> str:
        """Sort key of the entry, which the ledger takes once."""
        return self.key_form.format(**vars(self))

    @classmethod
    def key_of(cls, **parts: object) -> str:
        """Sort key of the entry that has these fields."""
        return cls.key_form.format(**parts)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **codec.write(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read an entry of any release; raises UnreadableRecordError for one that is damaged."""
        try:
            return cls._read(entry)
        except (InvalidInputError, codec.DocumentError) as error:
            why = str(error)
        except BROKEN as error:
            why = f"{type(error).__name__}: {shorten(str(error))}"
        raise UnreadableRecordError(
            f"the ledger's entry of kind {shown(entry.get('kind'))}, written at "
            f"{shown(entry.get('at'))}, is damaged: {why}",
            fix=RESTORE,
        )

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """As ``from_entry``; raises one of BROKEN, or InvalidInputError."""
        record = codec.read(cls, entry)
        kind: Any = cls
        for field in _times(kind):
            value = getattr(record, field.name)
            if value is not None and not 0 <= value <= LAST_SECOND:
                raise codec.DocumentError(f"{codec.key_of(field)} is {shown(value)}")
        return record


@cache
def _times(kind: type[Any]) -> list[Field[Any]]:
    return [one for one in fields(kind) if one.name == "at" or one.name.endswith("_at")]
