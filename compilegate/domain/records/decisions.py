"""A recorded decision as later steps read it, and what became of the flag after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain.decision import FlagAction
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import Author
from compilegate.domain.records.trials import ApprovalAnswer


@dataclass(frozen=True)
class RecordedDecision:
    """A decision document (docs/contracts.md); ``Decision.to_dict`` writes it.

    ``arms`` are the judge's figures of each arm, none where nothing was measured.
    """

    decision_id: str
    judge_version: str
    verdict: str
    candidate: str | None
    flag_action: FlagAction
    reasons: tuple[Reason, ...] = ()
    arms: tuple[Mapping[str, Any], ...] = ()

    @property
    def messages(self) -> tuple[str, ...]:
        """Why, for a person."""
        return tuple(reason.message for reason in self.reasons)


def read_decision(document: Mapping[str, Any]) -> RecordedDecision:
    """A decision document, whichever release has written it."""
    return RecordedDecision(
        decision_id=str(document["decision_id"]),
        judge_version=str(document["judge_version"]),
        verdict=str(document["verdict"]),
        candidate=document["candidate"],
        flag_action=FlagAction(document["flag"]["action"]),
        # The reasons of release 0.1 name no arm.
        reasons=tuple(
            Reason(str(one["code"]), str(one["message"]), arm=one.get("arm"))
            for one in document["reasons"]
        ),
        arms=tuple(document.get("arms") or ()),
    )


@dataclass(frozen=True)
class FlagOutcome:
    """What became of the flag after a decision, kept beside it.

    ``overrode`` and ``held_by`` are the manual change that was replaced or respected, ``approval``
    the answer, None where nobody was asked.
    """

    changed: bool
    enabled: bool
    state: str
    approved: bool
    overrode: Author | None = None
    held_by: Author | None = None
    approval: ApprovalAnswer | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document."""
        answer = self.approval
        shown = answer and {
            "approved": answer.approved, "by": answer.by, "at": answer.at, "reason": answer.reason,
        }  # fmt: skip
        return {**asdict(self), "approval": shown}
