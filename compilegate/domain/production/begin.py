"""What a run that begins trains: decided once, from the history and what was read beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.canary import open_slot
from compilegate.domain.production.fingerprint import Fingerprint, compare_with_proven
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.job_builder import JobBuilder
from compilegate.domain.production.next_arm import (
    UNFIT,
    Choice,
    FlagReading,
    Situation,
    next_arm,
    without_stale,
)
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.workload.model import BASELINE


@dataclass(frozen=True)
class RunStart:
    """One execution at the beginning of a run; ``started`` in epoch milliseconds."""

    workload: str
    execution: str
    started: int
    scheduled: str | None

    @property
    def run(self) -> str:
        """The run's id: two executions of the same scheduled time are one run."""
        return naming.trial_id(self.started)

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """Read the event: ``started`` and ``scheduled``, which may be None, are ISO times."""
        scheduled = event.get("scheduled")
        return cls(
            workload=str(event["workload"]),
            execution=str(event["execution"]),
            started=milliseconds(str(scheduled or event["started"])),
            scheduled=None if scheduled is None else str(scheduled),
        )


@dataclass(frozen=True)
class BeginInput:
    """What the decision rests on; ``now`` in epoch seconds.

    ``reading`` is the flag as parameter and ledger have it. ``jobs`` builds what production trains
    today, ``spec_key`` and ``source_key`` say where that lies. ``proven`` is what the promotion of
    ``reading`` was measured on, None where nothing is compared.
    """

    start: RunStart
    reading: FlagReading
    history: WorkloadHistory
    jobs: JobBuilder
    spec_key: str
    source_key: str
    now: int
    proven: Fingerprint | None = None


def choose_run(inputs: BeginInput) -> BegunRun:
    """The run with the arm that is next, or on the baseline where that arm's job cannot be built.

    Raises InvalidInputError where the baseline's cannot either.
    """
    begun = _begin(inputs, _flag_to_follow(inputs))
    problem = inputs.jobs.problem(begun, Attempt())
    if problem is not None and begun.arm != BASELINE:
        begun = _on_baseline(begun, str(problem))
        problem = inputs.jobs.problem(begun, Attempt())
    if problem is not None:
        raise problem
    return begun


def _flag_to_follow(inputs: BeginInput) -> FlagReading:
    """The flag as the run may follow it: off where what it would train is unproven."""
    promotion = inputs.reading.promotion
    if promotion is None or inputs.proven is None:
        return inputs.reading
    comparison = compare_with_proven(inputs.proven, inputs.jobs.fingerprint(promotion))
    return without_stale(inputs.reading, comparison.changed)


def _begin(inputs: BeginInput, reading: FlagReading) -> BegunRun:
    start, number = inputs.start, 1 + len(inputs.history.begun)
    choice = next_arm(situation(inputs.history, reading, inputs.jobs, now=inputs.now))
    return BegunRun(
        at=inputs.now,
        run=start.run,
        execution=start.execution,
        arm=choice.arm,
        why=choice.why,
        seed=_seed(choice, number),
        number=number,
        spec_key=inputs.spec_key,
        source_key=inputs.source_key,
        overrides=choice.overrides,
        confirm=choice.confirm,
        canary=choice.canary,
        decision_id=choice.decision_id,
        scheduled=start.scheduled,
        flag=reading.text,
        flag_problem=reading.problem,
        flag_told=reading.explanation,
        tags=choice.tags,
    )


def _on_baseline(begun: BegunRun, problem: str) -> BegunRun:
    """The run on the baseline instead: the candidate's job cannot be built any more."""
    return replace(
        begun, arm=BASELINE, why=UNFIT, overrides={}, confirm=False, canary=None, decision_id=None,
        flag_problem=UNFIT, tags={},
        flag_told=f"{begun.arm} does not fit the registered job: {problem}",
    )  # fmt: skip


def situation(
    history: WorkloadHistory, reading: FlagReading, jobs: JobBuilder, *, now: int
) -> Situation:
    """What has happened since the flag took its present value.

    A run that began longer ago than any run takes is not on its way any more: its execution was
    lost, and what it should have answered is asked again.
    """
    since = _since(reading.flag)
    recent = max(since, now - jobs.longest_seconds)
    reviews: Sequence[Review] = [review for review in history.reviews if review.at >= since]
    return Situation(
        reading=reading,
        runs=[run for run in history.runs if run.started_at >= since],
        in_flight=[
            begun
            for begun in history.begun
            if begun.run not in history.ended_runs and begun.at >= recent
        ],
        canary=open_slot(history, now=now, job=jobs.trained.digest),
        review=reviews[-1] if reviews else None,
    )


def milliseconds(text: str) -> int:
    """Epoch milliseconds of an ISO time; raises InvalidInputError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        fix = "give an ISO time such as 2026-11-20T02:00:00Z"
        raise InvalidInputError("is not a time", field="scheduled", value=text, fix=fix) from error
    dated = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(dated.timestamp() * 1000)


def _since(flag: Flag) -> int:
    """Epoch second from which the flag holds, 0 where it has no valid time."""
    try:
        return milliseconds(flag.since or "") // 1000
    except InvalidInputError:
        return 0


def _seed(choice: Choice, number: int) -> int:
    """A new seed for every run, so that chance shows; a trial that needs pairs sets it."""
    return number if choice.seed is None else choice.seed
