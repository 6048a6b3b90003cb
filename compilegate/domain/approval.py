"""A promotion that waits for a person: what was asked, who waits, and what was answered.

The ledger keeps the question, a token for each attempt of the state machine at waiting, and one
answer. The answer that was written first stands, whoever gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ASKED, TOKEN, ANSWER = "approval_asked", "approval_token", "approval"
# A month: long enough for holidays, short enough that the evidence is still today's.
WAIT_SECONDS = 30 * 24 * 3600
# Who answers where no person does.
NOBODY, STOPPED = "nobody", "evaluate"

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Approval:
    """One question; ``answer`` is None while it is open. ``tokens`` are oldest first."""

    trial: str
    asked: Entry
    tokens: tuple[str, ...]
    answer: Entry | None

    @property
    def approved(self) -> bool:
        """Whether a person has said yes; silence is a no."""
        return self.answer is not None and self.answer["approved"] is True


def approvals(entries: Iterable[Entry]) -> list[Approval]:
    """Every question among a workload's ledger entries, oldest first."""
    found = [dict(entry) for entry in entries]
    asked = [entry for entry in found if entry.get("kind") == ASKED]

    def of(trial: str, kind: str) -> list[Entry]:
        return [
            entry for entry in found if (entry.get("trial"), entry.get("kind")) == (trial, kind)
        ]

    return [
        Approval(
            trial=entry["trial"],
            asked=entry,
            tokens=tuple(
                str(token["token"])
                for token in sorted(of(entry["trial"], TOKEN), key=lambda one: int(one["number"]))
            ),
            answer=next(iter(of(entry["trial"], ANSWER)), None),
        )
        for entry in sorted(asked, key=lambda one: (int(one["at"]), str(one["trial"])))
    ]
