"""Reads the entries of one workload's ledger; an unknown or damaged entry is kept as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, get_args

from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.records import (
    LAST_SECOND,
    LedgerRecord,
    production,
    trials,
)
from compilegate.domain.records.flags import FlagVersion

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Swept(LedgerRecord):
    """What the daily sweep cleaned up."""

    kind = "swept"
    key_form = "swept#{at:012d}"

    at: int
    stopped_jobs: tuple[str, ...] = ()
    released_locks_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unlocked(LedgerRecord):
    """A lock that a person released; ``status`` is how its execution had ended, None: forgotten.

    ``by`` and ``reason`` are the person's; ``stopped`` says that the execution ran until then.
    """

    kind = "unlocked"
    key_form = "unlocked#{at:012d}"

    at: int
    execution: str
    by: str
    reason: str
    status: str | None = None
    stopped: bool = False


@dataclass(frozen=True)
class DrainMark(LedgerRecord):
    """Whether a deployment is drained, by whom and since when.

    ``schedules`` are those that a drain has disabled and that are enabled again after it.
    ``version`` counts the marks of a deployment from 1.
    """

    kind = "drain"
    key_form = "drain#{version:08d}"

    version: int
    drained: bool
    at: int
    by: str
    schedules: tuple[str, ...] = ()

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """Nothing but ``false`` lets a deployment start work."""
        return super()._read({**entry, "drained": entry["drained"] is not False})


@dataclass(frozen=True)
class ClassRevoked(LedgerRecord):
    """A class of jobs for which a deployment relies on the equivalence check no longer, and why.

    ``decision_id`` is of the decision that turned off an arm of this class which had passed the
    check, ``workload`` whose arm it was. ``job_class`` is framework, device and precision:
    ``pytorch 2.13, cuda 9.0, bf16``.
    """

    kind = "equivalence_revoked"
    key_form = "equivalence#{decision_id}"

    at: int
    decision_id: str
    workload: str
    job_class: str
    reason: str


@dataclass(frozen=True)
class ClassRestored(LedgerRecord):
    """A person knows another cause of what revoked a class: it counts no longer."""

    kind = "equivalence_restored"
    key_form = "equivalence#{decision_id}#restored"

    at: int
    decision_id: str
    by: str
    reason: str


@dataclass(frozen=True)
class UnknownRecord:
    """An entry of a kind that a later release writes."""

    entry: Entry

    @property
    def kind(self) -> str:
        """Kind of the entry, empty where it has none."""
        return str(self.entry.get("kind", ""))

    @property
    def at(self) -> int:
        """When it was written, epoch seconds; 0 where it does not say."""
        at = self.entry.get("at")
        if not isinstance(at, int | float) or not 0 <= at <= LAST_SECOND:
            return 0
        return int(at)

    @property
    def key(self) -> str:
        """Stands for the sort key, which the entry does not hold."""
        return json.dumps(dict(self.entry), sort_keys=True, default=str)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return dict(self.entry)


@dataclass(frozen=True)
class DamagedRecord(UnknownRecord):
    """An entry that cannot be read, and why; nothing follows from it."""

    error: UnreadableRecordError

    @property
    def problem(self) -> str:
        """Why, and what to do about it."""
        return str(self.error)


Record = (
    trials.ApprovalAnswer | trials.ApprovalRequested | trials.ApprovalToken | production.BegunRun
    | production.CanaryClosed | production.CanaryReported | production.CanaryRound
    | production.CanaryToken | production.CapacityWait | ClassRestored | ClassRevoked | DrainMark
    | FlagVersion
    | production.IgnoredJob | production.ProbationEnd | production.ProductionRun
    | production.RegistrationChange | production.Review | Swept | trials.TrialDecided
    | trials.TrialFailed | trials.TrialStarted | UnknownRecord | Unlocked
)  # fmt: skip

_READERS: dict[str, Callable[[Entry], Record]] = {
    kind.kind: kind.from_entry for kind in get_args(Record) if issubclass(kind, LedgerRecord)
}
_READERS[production.RegistrationChange.RETIRED] = production.RegistrationChange.from_entry
KINDS = tuple(_READERS)


def read(entry: Entry) -> Record:
    """The record that an entry holds; one that is damaged leaves the others as they are."""
    try:
        return _READERS.get(str(entry.get("kind")), UnknownRecord)(entry)
    except UnreadableRecordError as error:
        return DamagedRecord(entry, error)
