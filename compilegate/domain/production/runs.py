"""One production run as the ledger keeps it, however it was launched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

KIND = "run"
# Who starts the job: the TRAIN machine, or the team's own pipeline.
TRAIN, TEAM = "train", "team"


@dataclass(frozen=True)
class CanarySlot:
    """The place of a run in a round of a trial that production carries."""

    trial: str
    round: int
    position: int


def known_values(kind: type[Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass in a ledger entry; a later release may have written more."""
    known = {one.name for one in fields(kind)}
    values = {key: value for key, value in entry.items() if key in known}
    slot = values.get("canary")
    return {**values, "canary": CanarySlot(**slot) if slot else None}


@dataclass(frozen=True)
class ProductionRun:
    """A production run that has ended; times in epoch seconds.

    ``result`` is the run as evidence has it (design contract, section 5: metric, wall_seconds,
    finished, applied, seed, fingerprint, …) without its loss curve. ``counts`` says whether it is
    evidence at all: not on a fallback instance, not without a record of its own. ``why`` says what
    made it train this arm. ``usd`` is None where a price is not known.
    """

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

    @property
    def finished(self) -> bool:
        """Whether it trained to its end."""
        return self.result.get("finished") is True

    def to_entry(self, at: int) -> dict[str, Any]:
        """The ledger entry, recorded at epoch second ``at``."""
        return {"kind": KIND, "at": at, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> ProductionRun:
        """Read a ledger entry, whichever release has written it."""
        return cls(**known_values(cls, entry))


def production_runs(entries: Iterable[Mapping[str, Any]]) -> list[ProductionRun]:
    """The runs among a workload's ledger entries in the order of time.

    By when they started, not by when they were recorded: events arrive late and out of order.
    """
    found = [ProductionRun.from_entry(entry) for entry in entries if entry.get("kind") == KIND]
    return sorted(found, key=lambda run: (run.started_at, run.run, run.job))
