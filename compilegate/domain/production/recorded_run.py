"""What is recorded of an attempt that has ended, and what follows it: pure functions.

A job of a team's own pipeline becomes the same kind of record (ended_execution.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, InvalidInputError
from compilegate.domain.failures import IN_PROGRESS, Ending, JobEnd, explain, job_end
from compilegate.domain.optional import without_none
from compilegate.domain.production import attempts
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.job import RunJobs
from compilegate.domain.production.savings import RESTORED, failed
from compilegate.domain.records.production import BegunRun, CapacityWait, ProductionRun
from compilegate.domain.workload.model import BASELINE, Workload

TIMEOUT = "States.Timeout"
# Status of a run that gave up waiting for capacity, beside SageMaker's own.
NOT_RUN = "NotRun"
# What came of the bundle of compiled code that a job was to restore, and where its record does not
# say.
NOT_RECORDED = "not_recorded"
BUNDLE_STATES = (RESTORED, "absent", "mismatch", "stale", "rank_failed", "pending")
# What the TRAIN machine does next.
REVIEW, RERUN, WAIT, FAILED, END = "review", "rerun", "wait", "failed", "end"

# The daily pass reads the runs that began so long ago, and older ones that the row names. Lost
# ends are looked for as long as the queue of dead letters keeps their events (stacks/stack.py).
LOOK_BACK_SECONDS = 14 * DAY_SECONDS
# Two passes look at what the clean-up after a run may have missed.
RECENT_SECONDS = 2 * DAY_SECONDS


class StillTrainsError(CompilegateError):
    """A job still trains although the state machine no longer waits for it."""


@dataclass(frozen=True)
class EndedAttempt:
    """An attempt that the state machine no longer waits for, with everything that recording reads.

    ``jobs`` builds the run's jobs. ``described`` is SageMaker's description of the job, empty where
    it never was. ``now`` in epoch seconds. ``waits`` are the run's earlier attempts without
    capacity, ``duplicates`` the jobs in progress of earlier tries of the attempt.
    """

    reported: attempts.AttemptEnd
    begun: BegunRun
    jobs: RunJobs
    described: Mapping[str, Any]
    now: int
    evidence: attempts.JobEvidence = field(default_factory=attempts.JobEvidence)
    waits: tuple[CapacityWait, ...] = ()
    duplicates: tuple[str, ...] = ()

    @cached_property
    def end(self) -> JobEnd:
        """How the job ended."""
        return job_end(self.described, self.reported.error, self.reported.cause)

    @property
    def workload(self) -> Workload:
        """The workload as the run began with it."""
        return self.jobs.trained.workload


@dataclass(frozen=True)
class AttemptOutcome:
    """What is recorded of an attempt, after the jobs of ``stop`` were stopped.

    ``refused`` are the instance types that the team allows and on which the job cannot run, with
    the reason.
    """

    record: ProductionRun | CapacityWait
    stop: tuple[str, ...] = ()
    refused: Mapping[str, InvalidInputError] = field(default_factory=dict)


def attempt_outcome(ended: EndedAttempt) -> AttemptOutcome:
    """The attempt as a run, or as a wait for capacity.

    A job that is in progress after its time is stopped. Raises StillTrainsError for any other in
    progress: a run is recorded once, and recorded too early its true end would be lost.
    """
    reported, begun = ended.reported, ended.begun
    # CreateTrainingJob may start a job and its answer be lost; the retry then starts another.
    stop = ended.duplicates
    if ended.described.get("TrainingJobStatus") == IN_PROGRESS:
        if reported.error != TIMEOUT:
            why = explain(reported.error, reported.cause)
            raise StillTrainsError(
                f"{reported.job} is still training, but waiting for it failed: {why}. "
                "The job continues and saves its model; its run is not recorded"
            )
        stop = (reported.job, *stop)
    if ended.end.ending is not Ending.NO_CAPACITY:
        return AttemptOutcome(attempt_run(ended), stop)
    number = ended.reported.attempt.number + 1
    fallbacks, refused = list[str](), dict[str, InvalidInputError]()
    for instance_type in ended.workload.training.fallback_instances:
        try:
            ended.jobs.request(begun, attempts.Attempt(number, instance_type=instance_type))
            fallbacks.append(instance_type)
        except InvalidInputError as error:
            refused[instance_type] = error
    following = attempts.next_wait(
        ended.waits,
        fallbacks,
        attempts.most_wait_seconds(ended.workload),
        first_seconds=reported.first_wait_seconds,
    )
    if following is None:
        gave_up = f"gave up waiting for machines: {ended.end.reason}"
        return AttemptOutcome(attempt_run(ended, gave_up=gave_up), stop, refused)
    began, over = times(ended.described, otherwise=float(ended.now))
    wait = CapacityWait(
        at=ended.now,
        run=begun.run,
        attempt=ended.reported.attempt.number,
        job=reported.job,
        arm=ended.reported.attempt.arm(begun),
        reason=ended.end.reason,
        spent_seconds=over - began,
        wait_seconds=following.seconds,
        next_instance_type=following.instance_type,
    )
    return AttemptOutcome(wait, stop, refused)


def attempt_run(ended: EndedAttempt, *, gave_up: str = "") -> ProductionRun:
    """The record of the attempt; ``gave_up`` says why it was not run, empty where it was."""
    begun, attempt, end = ended.begun, ended.reported.attempt, ended.end
    chosen, fallback = attempt.as_chosen, attempt.instance_type
    result, counts, reason = judged_result(end, ended.evidence, begun.seed)
    status = end.status
    if fallback is not None:
        counts = False
        if end.ending is Ending.COMPLETED:
            reason = f"trained on {fallback} because the usual type had no capacity: no evidence"
    if gave_up:
        status, counts, reason = NOT_RUN, False, gave_up
    began, over = times(ended.described, otherwise=float(ended.now))
    price = ended.jobs.usd_per_hour(begun, attempt)
    own_type = begun.overrides.get("instance_type") if chosen else None
    bundle, details = ended.jobs.compile_bundle(begun, attempt), dict[str, Any]()
    # Beside the result, since what came of it says nothing of the arm.
    if bundle and (result.get("finished") or "compile_bundle" in result):
        state = (result.get("compile_bundle") or {}).get("state")
        said = state if state in BUNDLE_STATES else NOT_RECORDED
        details["compile_bundle"] = {"sha256": bundle.sha256, "state": said}
    return ProductionRun(
        run=begun.run,
        job=ended.reported.job,
        arm=attempt.arm(begun),
        started_at=began,
        ended_at=over,
        result=result,
        counts=counts,
        why=attempt.why(begun),
        status=status,
        reason=reason,
        confirm=begun.confirm and chosen,
        canary=begun.canary if chosen else None,
        decision_id=begun.decision_id if chosen else None,
        instance_type=str(fallback or own_type or ended.workload.training.instance_type),
        usd=billed_usd(ended.described, price),
        billable_seconds=billable_seconds(ended.described),
        details={
            "attempt": attempt.number,
            "ending": str(end.ending),
            "execution": begun.execution,
            "scheduled": begun.scheduled,
            "spec_key": begun.spec_key,
            "overrides": dict(begun.overrides) if chosen else {},
            "model": (ended.described.get("ModelArtifacts") or {}).get("S3ModelArtifacts"),
            **details,
        },
        at=ended.now,
    )


def judged_result(
    end: JobEnd, evidence: attempts.JobEvidence, seed: int | None
) -> tuple[Mapping[str, Any], bool, str | None]:
    """An ended job's run, whether it is evidence, and why it is not or did not finish."""
    result, problem = evidence.result, evidence.problem
    if end.ending is Ending.COMPLETED:
        return result, not problem, problem or result.get("reason")
    # A job that did not complete is a result, not missing data.
    unfinished = {
        "seed": seed, "metric": None, "wall_seconds": None, "finished": False, "reason": end.reason,
    }  # fmt: skip
    if evidence.ended_examined:  # its model is lost, and not by the arm
        return unfinished, False, f"ended in the equivalence check, with its run done: {end.reason}"
    return unfinished, end.about_arm, end.reason


def attempt_answer(record: ProductionRun | CapacityWait, ended: EndedAttempt) -> attempts.RunAnswer:
    """The answer for an attempt, with what the ledger has of it."""
    attempt, owner = ended.reported.attempt, ended.workload.owner
    if isinstance(record, ProductionRun):
        step = _what_next(record)
        following = attempts.Attempt(attempt.number + 1, rerun=True) if step == RERUN else attempt
        return run_answer(step, record, owner, following)
    return attempts.RunAnswer(
        WAIT,
        record.run,
        attempt.arm(ended.begun),
        "Waiting",
        str(record.reason),
        attempt=attempts.Attempt(attempt.number + 1, attempt.rerun, record.next_instance_type),
        wait_seconds=int(record.wait_seconds),
        owner=owner,
    )


def run_answer(
    step: str,
    run: ProductionRun,
    owner: str | None,
    attempt: attempts.Attempt = attempts.NO_ATTEMPT,
) -> attempts.RunAnswer:
    """The answer for a run that was recorded."""
    return attempts.RunAnswer(
        step, run.run, run.arm, run.status, run.reason, run.counts, attempt, owner=owner
    )


def _what_next(run: ProductionRun) -> str:
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
        return REVIEW
    return FAILED if run.arm == BASELINE else RERUN


def may_go_on(runs: Sequence[ProductionRun], *, since: float) -> bool:
    """Whether a run of which these jobs have ended may have another in progress.

    One that was not recorded, one that follows, or, where the last brought no model, one that
    started while its execution was being stopped: for as long as that is after ``since``.
    """
    if not runs:
        return True
    last = max(runs, key=lambda run: attempts.attempt_number(run.job))
    step = _what_next(last)
    return step == RERUN or (step != REVIEW and last.at >= since)


def runs_in_progress(history: WorkloadHistory, before: Iterable[str]) -> tuple[str, ...]:
    """The runs that a pass may have to look at once they are older than it looks back.

    Those that no record ends, or ended so late that two passes might not see it. ``before`` are
    those of an earlier read. What is RUN_SECONDS older than the newest has ended.
    """
    jobs = defaultdict[str, list[ProductionRun]](list)
    for run in history.runs:
        jobs[run.run].append(run)
    began = {begun.run: begun.at for begun in history.begun}
    runs = sorted({*before, *began})
    oldest = naming.time_of(runs[-1]) - attempts.RUN_SECONDS if runs else 0.0
    late = LOOK_BACK_SECONDS - RECENT_SECONDS
    return tuple(
        run
        for run in runs
        if naming.time_of(run) >= oldest and may_go_on(jobs[run], since=began.get(run, 0) + late)
    )


def notifies_owner(answer: attempts.RunAnswer, waits: Sequence[CapacityWait]) -> bool:
    """Whether there is no new model, or the run, after ``waits``, pauses for the first time."""
    is_first = not any(wait.wait_seconds for wait in waits)
    return answer.next == FAILED or (answer.wait_seconds > 0 and is_first)


def times(described: Mapping[str, Any], *, otherwise: float) -> tuple[float, float]:
    """When a job began to train and when it ended, in epoch seconds; as near as it is known."""
    moments = {
        name: value.timestamp() for name, value in described.items() if isinstance(value, datetime)
    }
    began = moments.get("TrainingStartTime", moments.get("CreationTime", otherwise))
    return began, moments.get("TrainingEndTime", moments.get("LastModifiedTime", began))


def billable_seconds(described: Mapping[str, Any]) -> float | None:
    """What SageMaker bills for the job, wall clock of the cluster."""
    seconds = described.get("BillableTimeInSeconds")
    return float(seconds) if isinstance(seconds, int | float) else None


def billed_usd(described: Mapping[str, Any], usd_per_hour: float | None) -> float | None:
    """The price of that time; None where time or price is unknown."""
    factors = without_none((billable_seconds(described), usd_per_hour))
    return factors[0] / 3600 * factors[1] if len(factors) == 2 else None
