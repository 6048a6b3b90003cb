"""Ledger records of the watch: a review after each production run, and a probation's last one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.codec import stored_as
from compilegate.domain.decision import ProbationStep, RequestedArm
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
    value: str = field(metadata=stored_as("to"))
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
    key_form = "watch#{run}"

    at: int
    run: str
    trial: str
    candidate: str = ""
    by_human: bool = False
    verdict: str | None = None
    next: ProbationStep | None = None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    changed: tuple[Reason, ...] = ()
    differs: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    runs: int = 0
    unseen: int = 0
    launched_by: tuple[str, ...] = ()
    cooldown_days: float = 0
    transition: PlannedTransition | None = field(default=None, metadata=stored_as("change"))
    decision_id: str | None = None
    decision_key: str | None = None
    evidence_key: str | None = None
    message_kind: str | None = field(default=None, metadata=stored_as("tell"))

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
        return self.next.runs if self.next else ()

    def reason(self, code: str) -> str | None:
        """The judge's reason of this code in words, None without one."""
        return next((reason.message for reason in self.reasons if reason.code == code), None)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry; a reason is kept by its code and message."""
        reasons = {
            name: [{"code": one.code, "message": one.message} for one in getattr(self, name)]
            for name in ("reasons", "notes", "changed")
        }
        return {**super().to_entry(), **reasons}


@dataclass(frozen=True)
class ProbationEnd(LedgerRecord):
    """The last decision of a probation, beside the trial's own."""

    kind = "probation"
    key_form = "trial#{trial}#probation/{decision_id}"

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
