"""Ledger records of a registration: what production trains, or that it no longer does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from compilegate.domain.codec import stored_as
from compilegate.domain.records import LedgerRecord


@dataclass(frozen=True)
class RegistrationChange(LedgerRecord):
    """One change of the registration; ``active`` is False where the workload was retired.

    ``changes`` are ``{field, before, after}`` each. ``document`` is the registration as stored
    (production/registration.py). Revisions begin at 1.
    """

    kind = "registered"
    key_form = "registered#{revision:08d}"
    RETIRED: ClassVar[str] = "retired"

    revision: int
    active: bool
    at: int = 0
    by: str | None = None
    changes: tuple[Mapping[str, Any], ...] = ()
    document: Mapping[str, Any] | None = field(default=None, metadata=stored_as("registration"))

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry, whose kind says whether it is active."""
        entry = super().to_entry()
        return entry if entry.pop("active") else {**entry, "kind": self.RETIRED}

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return super()._read({**entry, "active": entry["kind"] == cls.kind})
