"""Ledger records of canary rounds: opened, waited for, closed, reported to the waiting trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from compilegate.domain import ledger_keys
from compilegate.domain.records.runs import CanarySlot


@dataclass(frozen=True)
class RequestedRun:
    """One full run that the judge asked for."""

    arm: str
    seed: int


@dataclass(frozen=True)
class CanaryRound:
    """One round as the ledger has it; times in epoch seconds.

    ``arms`` are the overrides of each arm as a flag would hold them, the baseline's empty. ``job``
    is the digest of what the trial measures (``TrainedJob.digest``). After ``until`` nobody waits
    for it; a place whose run began ``slot_seconds`` ago without a result is free again. ``hold``
    says whether candidate models wait for the verdict.

    Later entries add: ``closed`` is the reason why it ended, None while it is open; ``reported``
    says that the waiting trial knows of that; ``tokens`` wake the trial, oldest first.
    """

    kind: ClassVar[str] = "canary_opened"

    trial: str
    round: int
    runs: tuple[RequestedRun, ...]
    arms: Mapping[str, Mapping[str, Any]]
    job: str
    until: int
    slot_seconds: int
    hold: bool
    at: int = 0
    closed: str | None = None
    reported: bool = False
    tokens: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Sort key of the entry that opens it."""
        return ledger_keys.canary_entry(self.trial, self.round)

    def slot(self, position: int) -> CanarySlot:
        """The place of one of its runs."""
        return CanarySlot(self.trial, self.round, position)

    def to_entry(self) -> dict[str, Any]:
        """The entry that opens it."""
        own = asdict(self)
        for added_later in ("closed", "reported", "tokens"):
            del own[added_later]
        return {"kind": self.kind, **own}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read the entry that opens it."""
        return cls(
            trial=str(entry["trial"]),
            round=int(entry["round"]),
            runs=tuple(RequestedRun(str(run["arm"]), int(run["seed"])) for run in entry["runs"]),
            arms=entry["arms"],
            job=str(entry["job"]),
            until=int(entry["until"]),
            slot_seconds=int(entry["slot_seconds"]),
            hold=entry["hold"] is not False,
            at=int(entry["at"]),
        )


@dataclass(frozen=True)
class CanaryToken:
    """A state machine that waits for the round's end; a repeated wait has a token of its own."""

    kind: ClassVar[str] = "canary_token"

    at: int
    trial: str
    round: int
    number: int
    token: str

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.canary_token_entry(self.trial, self.round, self.number)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(
            at=int(entry["at"]),
            trial=str(entry["trial"]),
            round=int(entry["round"]),
            number=int(entry.get("number", 0)),
            token=str(entry["token"]),
        )


@dataclass(frozen=True)
class CanaryClosed:
    """The round's end: whoever writes it first says why."""

    kind: ClassVar[str] = "canary_closed"

    at: int
    trial: str
    round: int
    reason: str

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.canary_closed_entry(self.trial, self.round)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        trial, number = str(entry["trial"]), int(entry["round"])
        return cls(int(entry["at"]), trial, number, str(entry["reason"]))


@dataclass(frozen=True)
class CanaryReported:
    """The waiting trial knows of the round's end."""

    kind: ClassVar[str] = "canary_told"

    at: int
    trial: str
    round: int

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.canary_told_entry(self.trial, self.round)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(int(entry["at"]), str(entry["trial"]), int(entry["round"]))
