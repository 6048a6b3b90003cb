"""Ledger records of trials: started, decided or failed, and the approval of a promotion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from compilegate.domain import ledger_keys


@dataclass(frozen=True)
class TrialStarted:
    """Which execution runs a trial, since when (epoch seconds).

    ``flag_version`` is the flag's version that the trial knows of, None where nobody noted it.
    """

    kind: ClassVar[str] = "started"

    at: int
    execution: str
    flag_version: int | None = None

    @property
    def trial(self) -> str:
        """The trial: an execution is named after workload and trial."""
        return self.execution.rpartition("-")[2]

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.started_entry(self.trial)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        seen = {} if self.flag_version is None else {"flag_version": self.flag_version}
        return {"kind": self.kind, "at": self.at, "execution": self.execution, **seen}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(int(entry["at"]), str(entry["execution"]), entry.get("flag_version"))


@dataclass(frozen=True)
class TrialDecided:
    """The decision of a trial; ``at`` in epoch seconds, ``reasons`` in words."""

    kind: ClassVar[str] = "decision"

    at: int
    trial: str
    verdict: str
    decision_key: str
    decision_id: str = ""
    candidate: str | None = None
    judge_version: str | None = None
    spent_usd: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.decision_entry(self.trial)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self), "reasons": list(self.reasons)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(
            at=int(entry["at"]),
            trial=str(entry["trial"]),
            verdict=str(entry["verdict"]),
            decision_key=str(entry.get("decision_key", "")),
            decision_id=str(entry.get("decision_id") or ""),
            candidate=entry.get("candidate"),
            judge_version=entry.get("judge_version"),
            spent_usd=entry.get("spent_usd"),
            reasons=tuple(str(reason) for reason in entry.get("reasons") or ()),
        )


@dataclass(frozen=True)
class TrialFailed:
    """A trial that ended without a decision; ``at`` in epoch seconds."""

    kind: ClassVar[str] = "failed"

    at: int
    trial: str
    execution: str = ""
    error: str = ""
    reason: str = ""
    stopped_jobs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.failed_entry(self.trial)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self), "stopped_jobs": list(self.stopped_jobs)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(
            at=int(entry["at"]),
            trial=str(entry.get("trial", "")),
            execution=str(entry.get("execution", "")),
            error=str(entry.get("error", "")),
            reason=str(entry.get("reason", "")),
            stopped_jobs=tuple(entry.get("stopped_jobs") or ()),
        )


@dataclass(frozen=True)
class ApprovalRequested:
    """The question whether a promotion may take effect; times in epoch seconds."""

    kind: ClassVar[str] = "approval_asked"

    at: int
    until: int
    trial: str
    execution: str
    decision_id: str | None
    decision_key: str
    candidate: str | None

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.approval_entry(self.trial)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(
            at=int(entry["at"]),
            until=int(entry.get("until", 0)),
            trial=str(entry["trial"]),
            execution=str(entry.get("execution", "")),
            decision_id=entry.get("decision_id"),
            decision_key=str(entry.get("decision_key", "")),
            candidate=entry.get("candidate"),
        )


@dataclass(frozen=True)
class ApprovalToken:
    """A state machine that waits for the answer."""

    kind: ClassVar[str] = "approval_token"

    at: int
    trial: str
    number: int
    token: str

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.approval_token_entry(self.trial, self.number)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        trial, number = str(entry["trial"]), int(entry["number"])
        return cls(int(entry["at"]), trial, number, str(entry["token"]))


@dataclass(frozen=True)
class ApprovalAnswer:
    """The answer; ``flag_version`` is the flag's version that whoever answered knows of."""

    kind: ClassVar[str] = "approval"

    at: int
    trial: str
    by: str
    approved: bool
    reason: str
    flag_version: int | None = None

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.approval_answer_entry(self.trial)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(
            at=int(entry["at"]),
            trial=str(entry["trial"]),
            by=str(entry["by"]),
            approved=entry["approved"] is True,
            reason=str(entry.get("reason") or ""),
            flag_version=entry.get("flag_version"),
        )
