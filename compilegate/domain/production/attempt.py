"""The attempts at a production run: one job each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from compilegate.domain.records.runs import BegunRun, CapacityWait

RERUN, FALLBACK = "rerun", "fallback"


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
    def from_dict(cls, event: Mapping[str, Any]) -> Self:
        """As the state machine passes it along."""
        return cls(int(event["number"]), event["rerun"] is True, event["instance_type"])

    def to_dict(self) -> dict[str, Any]:
        """For the state machine."""
        return asdict(self)


def attempt_of(number: int, waits: Iterable[CapacityWait]) -> Attempt:
    """A run's attempt by its number: after a wait what the wait says, else a rerun."""
    following = {wait.attempt + 1: wait.next_instance_type for wait in waits}
    attempt = Attempt()
    for one in range(1, number + 1):
        waited = one in following
        attempt = Attempt(one, attempt.rerun or not waited, following.get(one))
    return attempt


def attempt_number(job: str) -> int:
    """The number of the attempt that a job's name says; 0 for a name that says none."""
    number = job.rpartition("-p")[2].partition("-r")[0]
    return int(number) if number.isdigit() else 0
