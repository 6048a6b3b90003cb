"""Ledger records of a registration: what production trains, or that it no longer does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from compilegate.domain import ledger_keys


@dataclass(frozen=True)
class RegistrationChange:
    """One change of the registration; ``active`` is False where the workload was retired.

    ``changes`` are ``{field, before, after}`` each. ``document`` is the registration as stored
    (production/registration.py). ``at`` in epoch seconds, revisions begin at 1.
    """

    REGISTERED: ClassVar[str] = "registered"
    RETIRED: ClassVar[str] = "retired"

    at: int
    revision: int
    active: bool
    by: str | None = None
    changes: tuple[Mapping[str, Any], ...] = ()
    document: Mapping[str, Any] | None = None

    @property
    def kind(self) -> str:
        """Kind of the ledger entry."""
        return self.REGISTERED if self.active else self.RETIRED

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.registered_entry(self.revision)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {
            "kind": self.kind,
            "at": self.at,
            "by": self.by,
            "revision": self.revision,
            "changes": [dict(change) for change in self.changes],
            "registration": self.document,
        }

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(
            at=int(entry.get("at", 0)),
            revision=int(entry["revision"]),
            active=entry["kind"] == cls.REGISTERED,
            by=entry.get("by"),
            changes=tuple(entry.get("changes") or ()),
            document=entry.get("registration"),
        )
