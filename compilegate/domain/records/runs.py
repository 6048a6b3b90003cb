"""Ledger records of production runs: begun, waiting for capacity, ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Self

from compilegate.domain import ledger_keys

# Who starts the job: the TRAIN machine, or the team's own pipeline.
TRAIN, TEAM = "train", "team"


@dataclass(frozen=True)
class CanarySlot:
    """The place of a run in a canary round of a trial."""

    trial: str
    round: int
    position: int


@dataclass(frozen=True)
class BegunRun:
    """What was decided when a run began; nothing of it changes later. ``at`` in epoch seconds.

    ``execution`` owns the run. ``why`` says what made it train ``arm`` (next_arm.py). ``flag`` is
    the parameter as it was read, ``flag_problem`` why it was not followed, ``flag_told`` the same
    in words. ``number`` counts the workload's runs from 1. ``tags`` are its jobs' beside those
    that every job carries.
    """

    kind: ClassVar[str] = "run_begun"

    at: int
    run: str
    execution: str
    arm: str
    why: str
    seed: int
    number: int
    spec_key: str
    source_key: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    confirm: bool = False
    canary: CanarySlot | None = None
    decision_id: str | None = None
    scheduled: str | None = None
    flag: str | None = None
    flag_problem: str | None = None
    flag_told: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Sort key of the entry: whoever writes it first owns the run."""
        return ledger_keys.begun_entry(self.run)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry, whichever release has written it."""
        return cls(**_own_fields(cls, entry))


@dataclass(frozen=True)
class CapacityWait:
    """An attempt that found no capacity, and what follows it; ``at`` in epoch seconds.

    The next attempt starts after ``wait_seconds`` on ``next_instance_type``, None for the run's
    own. ``spent_seconds`` is how long this one took.
    """

    kind: ClassVar[str] = "run_waiting"

    at: int
    run: str
    attempt: int
    job: str
    arm: str
    reason: str | None
    spent_seconds: float
    wait_seconds: float
    next_instance_type: str | None

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.wait_entry(self.run, self.attempt)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return cls(
            at=int(entry["at"]),
            run=str(entry["run"]),
            attempt=int(entry["attempt"]),
            job=str(entry["job"]),
            arm=str(entry.get("arm", "")),
            reason=entry.get("reason"),
            spent_seconds=entry.get("spent_seconds", 0),
            wait_seconds=entry["wait_seconds"],
            next_instance_type=entry["next_instance_type"],
        )


@dataclass(frozen=True)
class ProductionRun:
    """A job of a production run that has ended; times in epoch seconds.

    ``result`` is the run as evidence has it (docs/contracts.md: metric, wall_seconds,
    finished, applied, seed, fingerprint, …) without its loss curve. ``counts`` says whether it is
    evidence at all: not on a fallback instance, not without a record of its own. ``why`` says what
    made it train this arm. ``usd`` is None where a price is not known.
    """

    kind: ClassVar[str] = "run"

    run: str
    job: str
    arm: str
    started_at: float
    ended_at: float
    result: Mapping[str, Any]
    counts: bool
    why: str
    launched_by: str = TRAIN
    status: str = "Completed"
    reason: str | None = None
    confirm: bool = False
    canary: CanarySlot | None = None
    decision_id: str | None = None
    instance_type: str | None = None
    usd: float | None = None
    billable_seconds: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    at: int = 0  # when it was recorded

    @property
    def key(self) -> str:
        """Sort key of the entry."""
        return ledger_keys.run_entry(self.run, self.job)

    @property
    def finished(self) -> bool:
        """Whether it trained to its end."""
        return self.result.get("finished") is True

    @property
    def without_change(self) -> bool:
        """Whether its own record says that the arm's change was not applied."""
        return self.result.get("applied") is False

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry, whichever release has written it."""
        return cls(**_own_fields(cls, entry))


def _own_fields(kind: type[Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass in a ledger entry; a later release may have written more."""
    names = {one.name for one in fields(kind)}
    values = {key: value for key, value in entry.items() if key in names}
    slot = values.get("canary")
    return {**values, "canary": CanarySlot(**slot) if slot else None}
