"""Ledger records of the watch: a review after each production run, and a probation's last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from compilegate.domain import ledger_keys, naming
from compilegate.domain.flag import Flag, parse_flag
from compilegate.domain.reasons import Reason
from compilegate.domain.records import LedgerRecord


@dataclass(frozen=True)
class PlannedTransition:
    """What a review does to the flag: written down before the flag is touched.

    ``value`` is the parameter's new text. ``change_id`` names the version that was reviewed.
    """

    change_id: str
    action: str
    value: str
    reason: str
    decided_at: int

    @property
    def flag(self) -> Flag:
        """The flag after the review."""
        return parse_flag(self.value)

    @property
    def reviewed_version(self) -> int:
        """The version of the flag that was reviewed."""
        return int(self.change_id.split("#")[1])

    def to_entry(self) -> dict[str, Any]:
        """Part of the review's ledger entry."""
        return {
            "change_id": self.change_id, "action": self.action, "to": self.value,
            "reason": self.reason, "decided_at": self.decided_at,
        }  # fmt: skip

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read that part."""
        return cls(
            change_id=str(entry["change_id"]),
            action=str(entry["action"]),
            value=str(entry["to"]),
            reason=str(entry["reason"]),
            decided_at=int(entry["decided_at"]),
        )


@dataclass(frozen=True)
class RequestedArm:
    """An arm that the judge wants trained next; ``confirm`` where the run checks an alarm."""

    arm: str
    confirm: bool


@dataclass(frozen=True)
class Review(LedgerRecord):
    """One review of a promotion after a production run.

    ``verdict`` and ``next`` are the judge's, None where there was nothing to judge. ``changed`` is
    what differs from what was measured, ``differs`` the names of all that makes the promotion
    stale, ``not_compared`` what one side does not say. ``runs`` counts the runs that were judged,
    ``unseen`` the candidate's latest that could not be. ``message_kind`` is the kind of message
    that it is worth, None for none.
    """

    kind = "watch"
    stored_as: ClassVar[Mapping[str, str]] = {"transition": "change", "message_kind": "tell"}

    at: int
    run: str
    trial: str
    candidate: str = ""
    by_human: bool = False
    verdict: str | None = None
    next: Mapping[str, Any] | None = None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    changed: tuple[Reason, ...] = ()
    differs: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    runs: int = 0
    unseen: int = 0
    launched_by: tuple[str, ...] = ()
    cooldown_days: float = 0
    transition: PlannedTransition | None = None
    decision_id: str | None = None
    decision_key: str | None = None
    evidence_key: str | None = None
    message_kind: str | None = None

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.watch_entry(self.run)

    @property
    def action(self) -> str | None:
        """What it does to the flag, None where the flag stays."""
        return self.transition.action if self.transition else None

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the judge's reasons and of the notes beside them."""
        return frozenset(reason.code for reason in (*self.reasons, *self.notes))

    @property
    def requested(self) -> tuple[RequestedArm, ...]:
        """The runs that the judge wants next, in order."""
        runs = (self.next or {}).get("runs", ())
        return tuple(RequestedArm(str(run["arm"]), run.get("confirm") is True) for run in runs)

    def reason(self, code: str) -> str | None:
        """The judge's reason of this code in words, None without one."""
        return next((reason.message for reason in self.reasons if reason.code == code), None)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry; a reason is kept by its code and message."""
        reasons = {
            name: [{"code": one.code, "message": one.message} for one in getattr(self, name)]
            for name in _REASONS
        }
        change = self.transition.to_entry() if self.transition else None
        return {**super().to_entry(), **reasons, "change": change}

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry of any release."""
        reasons = {
            name: tuple(Reason(one["code"], one["message"]) for one in entry.get(name) or ())
            for name in _REASONS
        }
        change = entry.get("change")
        transition = PlannedTransition.from_entry(change) if change else None
        return super()._read({**entry, **reasons, "change": transition})


_REASONS = ("reasons", "notes", "changed")


@dataclass(frozen=True)
class ProbationEnd(LedgerRecord):
    """The last decision of a probation, beside the trial's own."""

    kind = "probation"

    at: int
    trial: str
    run: str = ""
    decision_id: str = ""
    decision_key: str | None = None
    evidence_key: str | None = None
    verdict: str | None = None
    candidate: str | None = None
    judge_version: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return f"trial#{self.trial}#{naming.probation_record(self.decision_id)}"
