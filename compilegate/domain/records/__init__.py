"""What the ledger stores: one frozen type per kind of entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar, Self


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
        left out. Raises KeyError where a field without a default is missing.
        """
        values = {}
        for one in fields(cls):
            name = cls.stored_as.get(one.name, one.name)
            optional = one.default is not MISSING or one.default_factory is not MISSING
            if optional and entry.get(name) is None:
                continue
            value = entry[name]
            values[one.name] = tuple(value) if isinstance(value, list) else value
        return cls(**values)
