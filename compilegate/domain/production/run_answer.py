"""RecordRun's answer to the TRAIN machine: what comes next, and what it passes on of the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.recorded_run import (
    WAIT,
    EndedAttempt,
    next_attempt,
    what_next,
)
from compilegate.domain.records.runs import CapacityWait, ProductionRun

NO_ATTEMPT = Attempt()


@dataclass(frozen=True)
class RunAnswer:
    """``attempt`` is made next, after ``wait_seconds``; ``tell`` is a message to publish.

    Without a ``run`` nothing was recorded.
    """

    next: str
    run: str | None = None
    arm: str | None = None
    status: str = "Ignored"
    reason: str | None = None
    counts: bool = False
    attempt: Attempt = NO_ATTEMPT
    wait_seconds: int = 0
    owner: str | None = None
    tell: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """For the state machine."""
        return asdict(self)


def run_answer(
    step: str, run: ProductionRun, owner: str | None, attempt: Attempt = NO_ATTEMPT
) -> RunAnswer:
    """The answer for a run that was recorded."""
    return RunAnswer(
        step, run.run, run.arm, run.status, run.reason, run.counts, attempt, owner=owner
    )


def attempt_answer(record: ProductionRun | CapacityWait, ended: EndedAttempt) -> RunAnswer:
    """The answer for an attempt, with what the ledger has of it."""
    owner, following = ended.workload.owner, next_attempt(ended.attempt, record)
    if isinstance(record, ProductionRun):
        return run_answer(what_next(record), record, owner, following)
    return RunAnswer(
        WAIT,
        record.run,
        ended.arm,
        "Waiting",
        str(record.reason),
        attempt=following,
        wait_seconds=int(record.wait_seconds),
        owner=owner,
    )
