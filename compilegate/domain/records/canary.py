"""Ledger records of canary rounds: opened, waited for, closed, reported to the waiting trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from compilegate.domain.decision import RequestedFullRun
from compilegate.domain.records import LedgerRecord


@dataclass(frozen=True)
class CanaryRound(LedgerRecord):
    """One round.

    ``arms`` are the overrides of each arm as a flag would hold them, the baseline's empty. ``job``
    is the digest of what the trial measures (``TrainedJob.digest``). After ``until`` the trial no
    longer waits for it; a slot whose run began ``slot_seconds`` ago without a result is free
    again. ``hold`` says whether candidate models wait for the verdict.

    Later entries add: ``closed`` is the reason why it ended, None while it is open; ``reported``
    says that the waiting trial knows of that; ``tokens`` wake the trial, oldest first.
    """

    kind = "canary_opened"
    key_form = "canary#{trial}#{round:03d}"

    trial: str
    round: int
    runs: tuple[RequestedFullRun, ...]
    arms: Mapping[str, Mapping[str, Any]]
    job: str
    until: int
    slot_seconds: int
    hold: bool
    at: int = 0
    closed: str | None = None
    reported: bool = False
    tokens: tuple[str, ...] = ()

    def to_entry(self) -> dict[str, Any]:
        """The entry that opens it, without what later entries add."""
        entry = super().to_entry()
        for added_later in ("closed", "reported", "tokens"):
            del entry[added_later]
        return entry

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """Read the entry that opens it; models are held unless it says that they are not."""
        return super()._read({**entry, "hold": entry["hold"] is not False})


@dataclass(frozen=True)
class CanaryToken(LedgerRecord):
    """A state machine that waits for the round's end; a repeated wait has a token of its own."""

    kind = "canary_token"
    key_form = "canary#{trial}#{round:03d}#token#{number:04d}"

    at: int
    trial: str
    round: int
    number: int
    token: str


@dataclass(frozen=True)
class CanaryClosed(LedgerRecord):
    """The round's end: the first entry says why."""

    kind = "canary_closed"
    key_form = "canary#{trial}#{round:03d}#closed"

    at: int
    trial: str
    round: int
    reason: str


@dataclass(frozen=True)
class CanaryReported(LedgerRecord):
    """The waiting trial knows of the round's end."""

    kind = "canary_told"
    key_form = "canary#{trial}#{round:03d}#told"

    at: int
    trial: str
    round: int
