"""What is recorded of an attempt that has ended, and what follows it: pure functions.

A job of a team's own pipeline becomes the same kind of record (ended_execution.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, InvalidInputError
from compilegate.domain.failures import IN_PROGRESS, Ending, JobEnd, explain, job_end
from compilegate.domain.production.attempts import (
    NO_ATTEMPT,
    Attempt,
    AttemptEnd,
    JobEvidence,
    RunAnswer,
    most_wait_seconds,
    next_wait,
)
from compilegate.domain.production.job_builder import JobBuilder
from compilegate.domain.production.savings import failed
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from compilegate.domain.workload.model import BASELINE, Workload

TIMEOUT = "States.Timeout"
# Status of a run that gave up waiting for capacity, beside SageMaker's own.
NOT_RUN = "NotRun"
# What the TRAIN machine does next.
WATCH, RERUN, WAIT, FAILED, END = "watch", "rerun", "wait", "failed", "end"


class StillTrainsError(CompilegateError):
    """A job still trains although the state machine no longer waits for it."""


@dataclass(frozen=True)
class EndedAttempt:
    """An attempt that the state machine no longer waits for, with everything that recording reads.

    ``jobs`` builds the run's jobs. ``described`` is SageMaker's description of the job, empty where
    it never was. ``now`` in epoch seconds. ``waits`` are the run's earlier attempts without
    capacity, ``same_prefix`` the jobs in progress whose names begin like those of the run.
    """

    reported: AttemptEnd
    begun: BegunRun
    jobs: JobBuilder
    described: Mapping[str, Any]
    now: int
    evidence: JobEvidence = field(default_factory=JobEvidence)
    waits: tuple[CapacityWait, ...] = ()
    same_prefix: Sequence[str] = ()

    @cached_property
    def end(self) -> JobEnd:
        """How the job ended."""
        return job_end(self.described, self.reported.error, self.reported.cause)

    @property
    def duplicates(self) -> tuple[str, ...]:
        """Other jobs of the run that are in progress.

        CreateTrainingJob may start a job and its answer be lost, and the retry then starts another.
        """
        own = naming.own_jobs(self.reported.workload, self.reported.run, self.same_prefix)
        return tuple(job for job in own if job != self.reported.job)

    @property
    def attempt(self) -> Attempt:
        """Which attempt it is."""
        return self.reported.attempt

    @property
    def arm(self) -> str:
        """The arm that the attempt trained."""
        return self.attempt.arm(self.begun)

    @property
    def workload(self) -> Workload:
        """The workload as the run began with it."""
        return self.jobs.trained.workload


@dataclass(frozen=True)
class AttemptOutcome:
    """What is recorded of an attempt, after the jobs of ``stop`` were stopped.

    ``fallbacks`` are the instance types that the team allows and that were considered: why the job
    cannot run on one, None where it can.
    """

    record: ProductionRun | CapacityWait
    stop: tuple[str, ...] = ()
    fallbacks: Mapping[str, InvalidInputError | None] = field(default_factory=dict)


def attempt_outcome(ended: EndedAttempt) -> AttemptOutcome:
    """The attempt as a run, or as a wait for capacity.

    A job that is in progress after its time is stopped. Raises StillTrainsError for any other in
    progress: a run is recorded once, and recorded too early its true end would be lost.
    """
    reported = ended.reported
    in_progress = ended.described.get("TrainingJobStatus") == IN_PROGRESS
    if in_progress and reported.error != TIMEOUT:
        why = explain(reported.error, reported.cause)
        raise StillTrainsError(
            f"{reported.job} is still training, but waiting for it failed: {why}. "
            "The job continues and saves its model; its run is not recorded"
        )
    stop = (reported.job, *ended.duplicates) if in_progress else ended.duplicates
    if ended.end.ending is not Ending.NO_CAPACITY:
        return AttemptOutcome(attempt_run(ended), stop)
    number = ended.attempt.number + 1
    fallbacks = {
        one: ended.jobs.problem(ended.begun, Attempt(number, instance_type=one))
        for one in ended.workload.training.fallback_instances
    }
    usable = [one for one, refused in fallbacks.items() if refused is None]
    gave_up = f"gave up waiting for machines: {ended.end.reason}"
    record = capacity_wait(ended, usable) or attempt_run(ended, gave_up=gave_up)
    return AttemptOutcome(record, stop, fallbacks)


def capacity_wait(ended: EndedAttempt, fallbacks: Sequence[str]) -> CapacityWait | None:
    """How the run waits for capacity, ``fallbacks`` are types to run on; None where it gives up."""
    following = next_wait(
        ended.waits,
        fallbacks,
        most_wait_seconds(ended.workload),
        first_seconds=ended.reported.first_wait_seconds,
    )
    if following is None:
        return None
    began, over = times(ended.described, otherwise=float(ended.now))
    return CapacityWait(
        at=ended.now,
        run=ended.begun.run,
        attempt=ended.attempt.number,
        job=ended.reported.job,
        arm=ended.arm,
        reason=ended.end.reason,
        spent_seconds=over - began,
        wait_seconds=following.seconds,
        next_instance_type=following.instance_type,
    )


def attempt_run(ended: EndedAttempt, *, gave_up: str | None = None) -> ProductionRun:
    """The record of the attempt; ``gave_up`` says why it was not run at all."""
    begun, chosen = ended.begun, ended.attempt.as_chosen
    result, counts, reason = _result(ended)
    began, over = times(ended.described, otherwise=float(ended.now))
    billable = billable_seconds(ended.described)
    price = ended.jobs.usd_per_hour(begun, ended.attempt)
    own_type = begun.overrides.get("instance_type") if chosen else None
    registered_type = ended.workload.training.instance_type
    return ProductionRun(
        run=begun.run,
        job=ended.reported.job,
        arm=ended.arm,
        started_at=began,
        ended_at=over,
        result=result,
        counts=counts and gave_up is None,
        why=ended.attempt.why(begun),
        status=ended.end.status if gave_up is None else NOT_RUN,
        reason=reason if gave_up is None else gave_up,
        confirm=begun.confirm and chosen,
        canary=begun.canary if chosen else None,
        decision_id=begun.decision_id if chosen else None,
        instance_type=str(ended.attempt.instance_type or own_type or registered_type),
        usd=None if billable is None or price is None else billable / 3600 * price,
        billable_seconds=billable,
        details=_details(ended),
        at=ended.now,
    )


def what_next(run: ProductionRun) -> str:
    """What follows a run that has been recorded.

    A candidate that failed is rerun on the baseline: its failure is evidence, and a model is
    needed. What a person stopped stays stopped.
    """
    if run.status == NOT_RUN:
        return FAILED
    if run.details.get("ending") == Ending.STOPPED:
        return END
    untreated = run.arm != BASELINE and run.without_change
    # Without evidence nothing is known of the run, but its model is there.
    if not failed(run) and not untreated:
        return WATCH
    return FAILED if run.arm == BASELINE else RERUN


def next_attempt(attempt: Attempt, record: ProductionRun | CapacityWait) -> Attempt:
    """The attempt that the machine makes after ``record`` of this one; the same where it ends."""
    number = attempt.number + 1
    if isinstance(record, CapacityWait):
        return Attempt(number, rerun=attempt.rerun, instance_type=record.next_instance_type)
    return Attempt(number, rerun=True) if what_next(record) == RERUN else attempt


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


def notifies_owner(record: ProductionRun | CapacityWait, ended: EndedAttempt) -> bool:
    """Whether there is no new model, or the run has to pause for the first time."""
    if isinstance(record, ProductionRun):
        return what_next(record) == FAILED
    return record.wait_seconds >= 1 and not any(wait.wait_seconds for wait in ended.waits)


def _result(ended: EndedAttempt) -> tuple[Mapping[str, Any], bool, str | None]:
    """The run, whether it is evidence, and why it is not or did not finish."""
    end, fallback = ended.end, ended.attempt.instance_type
    if end.ending is not Ending.COMPLETED:
        return (
            failed_result(ended.begun.seed, end.reason),
            end.about_arm and not fallback,
            end.reason,
        )
    result, problem = ended.evidence.result, ended.evidence.problem
    if fallback is not None:
        return (
            result,
            False,
            f"trained on {fallback} because the usual type had no capacity: no evidence",
        )
    return result, problem is None, problem or result.get("reason")


def _details(ended: EndedAttempt) -> dict[str, Any]:
    begun = ended.begun
    return {
        "attempt": ended.attempt.number,
        "ending": str(ended.end.ending),
        "execution": begun.execution,
        "scheduled": begun.scheduled,
        "spec_key": begun.spec_key,
        "overrides": dict(begun.overrides) if ended.attempt.as_chosen else {},
        "model": (ended.described.get("ModelArtifacts") or {}).get("S3ModelArtifacts"),
    }


def failed_result(seed: int | None, reason: str | None) -> Mapping[str, Any]:
    """The run of a job that did not complete: a result, not missing data."""
    return {
        "seed": seed, "metric": None, "wall_seconds": None, "finished": False, "reason": reason,
    }  # fmt: skip


def times(described: Mapping[str, Any], *, otherwise: float) -> tuple[float, float]:
    """When a job began to train and when it ended, in epoch seconds; as near as it is known."""
    began = _first(described, "TrainingStartTime", "CreationTime", otherwise=otherwise)
    return began, _first(described, "TrainingEndTime", "LastModifiedTime", otherwise=began)


def _first(described: Mapping[str, Any], *names: str, otherwise: float) -> float:
    moments = (described.get(name) for name in names)
    return next((one.timestamp() for one in moments if isinstance(one, datetime)), otherwise)


def billable_seconds(described: Mapping[str, Any]) -> float | None:
    """What SageMaker bills for the job, wall clock of the cluster."""
    seconds = described.get("BillableTimeInSeconds")
    return float(seconds) if isinstance(seconds, int | float) else None
