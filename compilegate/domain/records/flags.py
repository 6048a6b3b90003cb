"""Ledger records of the flag: versions 1, 2, 3, … without a gap; the latest is what holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from compilegate.domain import ledger_keys
from compilegate.domain.flag import OFF, Flag, parse_flag

# What ``by`` begins with where a person made the change.
HUMAN = "human:"


@dataclass(frozen=True)
class Author:
    """Who changed the flag, when (epoch seconds) and why."""

    by: str
    at: int
    reason: str


@dataclass(frozen=True)
class FlagVersion:
    """One change of the flag; ``at`` in epoch seconds.

    ``value`` is the parameter's text from then on, ``previous_value`` the one before. ``overrode``
    is the manual change that it replaced. ``decided_at``, ``seen_version`` and ``based_on`` are
    those of the change (flag_change.py). ``details`` are further fields of the entry: trial, run,
    evidence_key, decision_key, approved_by.
    """

    kind: ClassVar[str] = "flag"

    version: int
    at: int
    change_id: str
    by: str
    action: str
    reason: str
    value: str
    previous_value: str = OFF.to_json()
    parameter: str = ""
    decided_at: int | None = None
    seen_version: int | None = None
    based_on: int | None = None
    decision_id: str | None = None
    overrode: Author | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.flag_entry(self.version)

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
        """The ledger entry."""
        return {
            **self.details,
            "kind": self.kind,
            "at": self.at,
            "version": self.version,
            "change_id": self.change_id,
            "by": self.by,
            "action": self.action,
            "reason": self.reason,
            "decided_at": self.decided_at,
            "seen_version": self.seen_version,
            "based_on": self.based_on,
            "decision_id": self.decision_id,
            "flag": self.parameter,
            "from": self.previous_value,
            "to": self.value,
            "overrode": None if self.overrode is None else asdict(self.overrode),
        }

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        overrode = entry.get("overrode")
        return cls(
            version=int(entry["version"]),
            at=int(entry["at"]),
            change_id=str(entry.get("change_id", "")),
            by=str(entry["by"]),
            action=str(entry["action"]),
            reason=str(entry.get("reason", "")),
            value=str(entry["to"]),
            previous_value=str(entry.get("from", OFF.to_json())),
            parameter=str(entry.get("flag", "")),
            decided_at=entry.get("decided_at"),
            seen_version=entry.get("seen_version"),
            based_on=entry.get("based_on"),
            decision_id=entry.get("decision_id"),
            overrode=None if overrode is None else Author(**overrode),
            details={key: value for key, value in entry.items() if key not in _OWN},
        )


_OWN = (
    "kind", "at", "version", "change_id", "by", "action", "reason", "decided_at", "seen_version",
    "based_on", "decision_id", "flag", "from", "to", "overrode",
)  # fmt: skip
