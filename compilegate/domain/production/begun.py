"""A production run that has begun, as the ledger keeps it, and the attempts at it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from compilegate.domain.production.runs import CanarySlot, known_values

KIND = "run_begun"
RERUN, FALLBACK = "rerun", "fallback"


@dataclass(frozen=True)
class BegunRun:
    """What was settled when a run began; nothing of it changes later. ``at`` in epoch seconds.

    ``execution`` owns the run. ``why`` says what made it train ``arm`` (next_arm.py). ``flag`` is
    the parameter as it was read, ``flag_problem`` why it was not followed, ``flag_told`` the same
    in words. ``number`` counts the workload's runs from 1. ``tags`` are its jobs' beside those
    that every job carries.
    """

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

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry."""
        return {"kind": KIND, **asdict(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> BegunRun:
        """Read a ledger entry, whichever release has written it."""
        return cls(**known_values(cls, entry))


@dataclass(frozen=True)
class Attempt:
    """One job of a run. ``rerun`` follows a candidate that failed; both that and a fallback
    ``instance_type`` train the baseline. None is the run's own type.
    """

    number: int = 0
    rerun: bool = False
    instance_type: str | None = None

    @property
    def trains_baseline(self) -> bool:
        """Whether it trains the baseline, whichever arm the run has chosen."""
        return self.rerun or self.instance_type is not None

    def why(self, begun: BegunRun) -> str:
        """What makes it train its arm."""
        if self.instance_type is not None:
            return FALLBACK
        return RERUN if self.rerun else begun.why

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Attempt:
        """As the state machine passes it along."""
        return cls(int(found["number"]), found["rerun"] is True, found["instance_type"])

    def to_dict(self) -> dict[str, Any]:
        """For the state machine."""
        return asdict(self)


def attempt_of(number: int, waits: Iterable[Mapping[str, Any]]) -> Attempt:
    """A run's attempt by its number: after a wait what the wait says, else a rerun.

    ``waits`` are the ledger's entries of the run's attempts that found no capacity.
    """
    following = {int(wait["attempt"]) + 1: wait["next_instance_type"] for wait in waits}
    attempt = Attempt()
    for one in range(1, number + 1):
        waited = one in following
        attempt = Attempt(one, attempt.rerun or not waited, following.get(one))
    return attempt


def attempt_number(job: str) -> int:
    """The number of the attempt that a job's name says; 0 for a name that says none."""
    number = job.rpartition("-p")[2].partition("-r")[0]
    return int(number) if number.isdigit() else 0


def begun_runs(entries: Iterable[Mapping[str, Any]]) -> list[BegunRun]:
    """The runs that a workload's ledger entries say were begun, in the order of time."""
    found = [BegunRun.from_entry(entry) for entry in entries if entry.get("kind") == KIND]
    return sorted(found, key=lambda begun: (begun.at, begun.run))
