"""The attempts at a production run, one job each, and the waits for capacity between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from compilegate.domain.codec import read
from compilegate.domain.outside import is_figure
from compilegate.domain.planning.rounds import attempt_seconds
from compilegate.domain.records.production import BegunRun, CapacityWait
from compilegate.domain.workload.model import BASELINE, Workload

RERUN, FALLBACK = "rerun", "fallback"
# Five minutes, then twice as long each time, at most an hour: capacity comes back within minutes
# or not for hours, and every attempt costs an API call or two.
FIRST_SECONDS = 300
LONGEST_SECONDS = 3600
# Attempts of one run. Each takes up to 40 of the 25,000 events that an execution's history may
# have, throttling included, which leaves 5,000 for retries of functions and the run's end.
MOST_ATTEMPTS = 500
# Pauses that grow from a second to the longest one of a run that may wait for four weeks.
GROWING_PAUSES = 16
# A model that comes a day late is of no use.
MOST_HOURS = 24.0
WEEK_HOURS = 168.0
# The longest that a run may take: two jobs of SageMaker's longest, 28 days each (a candidate that
# fails at the end and its rerun), as long a wait as a workload file may name, and room for queues.
RUN_SECONDS = 90 * 24 * 3600


@dataclass(frozen=True)
class Attempt:
    """One job of a run. ``rerun`` follows a candidate that failed; both that and a fallback
    ``instance_type`` train the baseline. None is the run's own type.
    """

    number: int = 0
    rerun: bool = False
    instance_type: str | None = None

    @property
    def as_chosen(self) -> bool:
        """Whether it trains what the run had chosen, on machines of its own type."""
        return not self.rerun and self.instance_type is None

    def arm(self, begun: BegunRun) -> str:
        """The arm that it trains."""
        return begun.arm if self.as_chosen else BASELINE

    def why(self, begun: BegunRun) -> str:
        """What makes it train its arm."""
        if self.instance_type is not None:
            return FALLBACK
        return RERUN if self.rerun else begun.why


@dataclass(frozen=True)
class AttemptEnd:
    """The end of an attempt as the state machine reports it.

    ``error`` and ``cause`` are its task's, empty where that did not fail; ``first_wait_seconds`` is
    how long the run's first wait for capacity is.
    """

    workload: str
    run: str
    job: str
    attempt: Attempt
    error: str = ""
    cause: str = ""
    first_wait_seconds: float = FIRST_SECONDS

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """Read the state machine's event."""
        # Of the execution's input, which a person may have written.
        first = event.get("wait_seconds")
        is_number = is_figure(first) and not isinstance(first, bool)
        return read(cls, {**event, "first_wait_seconds": first if is_number else None})


@dataclass(frozen=True)
class JobEvidence:
    """A completed job's run as evidence has it; ``problem`` says why there is none, else empty.

    ``ended_examined``: the job did not complete, its run did, and was being examined.
    """

    result: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    ended_examined: bool = False


NO_ATTEMPT = Attempt()


@dataclass(frozen=True)
class RunAnswer:
    """RecordRun's answer to the state machine.

    ``attempt`` is made next, after ``wait_seconds``; ``tell`` is a message to publish. Without
    a ``run`` nothing was recorded.
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


@dataclass(frozen=True)
class Wait:
    """The next attempt: after how many seconds, and on which instance type; None is the own."""

    seconds: int
    instance_type: str | None = None


def most_wait_seconds(workload: Workload) -> float:
    """How long a run may wait in all: as the team says, else until the next one, at most a day."""
    hours = workload.schedule.max_wait_hours
    if hours is None:
        hours = min(MOST_HOURS, WEEK_HOURS / workload.schedule.runs_per_week)
    return hours * 3600


def longest_run_seconds(workload: Workload) -> float:
    """The longest that a run of this workload takes: a candidate, its rerun, and all waiting."""
    job = attempt_seconds(workload.training.longest_job_hours)
    return 2 * job + most_wait_seconds(workload)


def next_wait(
    waits: Sequence[CapacityWait],
    fallbacks: Sequence[str],
    most_seconds: float,
    *,
    first_seconds: float = FIRST_SECONDS,
) -> Wait | None:
    """What follows an attempt without capacity; None gives up.

    ``waits`` are the run's earlier ones. The own type first, then each of
    ``fallbacks`` at once, then a pause, and so on from the beginning. What the attempts themselves
    took counts: a spot job may wait for hours before it says that there was no capacity. Pauses
    are longer where the wait is so long that there would be more than ``MOST_ATTEMPTS``.
    """
    if len(waits) + 1 >= MOST_ATTEMPTS:
        return None
    round_number, position = divmod(len(waits), 1 + len(fallbacks))
    if position < len(fallbacks):
        return Wait(0, fallbacks[position])
    pauses = MOST_ATTEMPTS // (1 + len(fallbacks)) - GROWING_PAUSES
    longest = max(first_seconds, LONGEST_SECONDS, most_seconds / pauses)
    seconds = min(first_seconds * 2 ** min(round_number, GROWING_PAUSES), longest)
    waited = sum(wait.wait_seconds + wait.spent_seconds for wait in waits)
    return Wait(round(seconds)) if waited + seconds <= most_seconds else None
