"""Ledger records of the flag: versions 1, 2, 3, … without a gap; the latest is what holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from compilegate.domain.codec import key_of, stored_as
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.records import LedgerRecord

# What ``by`` begins with where a person made the change.
HUMAN = "human:"


@dataclass(frozen=True)
class Author:
    """Who changed the flag, when (epoch seconds) and why."""

    by: str
    at: int
    reason: str


@dataclass(frozen=True)
class FlagVersion(LedgerRecord):
    """One change of the flag: by whom and why; one that is only requested has version 0.

    ``change_id`` makes repeating a step the same change. ``by`` is ``evaluate``, ``train`` or
    ``human:NAME``. ``value`` is the parameter's text from then on, ``previous_value`` the one
    before. ``decided_at`` is the epoch second up to which the evidence behind it reaches,
    ``seen_version`` the flag's version that it knows of: where that is known it decides instead,
    because the clocks of two machines differ. ``based_on`` is the version that was judged, of which
    the change is a consequence, None for one that stands for itself. ``overrode`` is the manual
    change that it replaced. ``details`` are further fields of the entry: trial, run, evidence_key,
    decision_key, approved_by.
    """

    kind = "flag"
    key_form = "flag#{version:08d}"

    version: int
    at: int
    change_id: str
    by: str
    action: str
    reason: str
    value: str = field(metadata=stored_as("to"))
    previous_value: str = field(default=OFF.to_json(), metadata=stored_as("from"))
    parameter: str = field(default="", metadata=stored_as("flag"))
    decided_at: int | None = None
    seen_version: int | None = None
    based_on: int | None = None
    decision_id: str | None = None
    overrode: Author | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def flag(self) -> Flag:
        """What the flag is from then on."""
        return parse_flag(self.value)

    @property
    def previous(self) -> Flag:
        """What the flag was before."""
        return parse_flag(self.previous_value)

    @property
    def author(self) -> Author:
        """Who made the change."""
        return Author(self.by, self.at, self.reason)

    @property
    def by_human(self) -> bool:
        """Whether a person made the change."""
        return self.by.startswith(HUMAN)

    @property
    def trial(self) -> str | None:
        """The trial behind the change, None without one."""
        trial = self.details.get("trial")
        return str(trial) if trial else None

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry, ``details`` among its fields."""
        entry = super().to_entry()
        return {**entry.pop("details"), **entry}

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        own = {"kind", *map(key_of, fields(cls))}
        details = {key: value for key, value in entry.items() if key not in own}
        version = super()._read({**entry, "details": details})
        parse_flag(version.value)  # raises for what no run could follow
        return version
