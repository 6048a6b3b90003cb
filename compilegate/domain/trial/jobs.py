"""How the jobs of a trial ended, as the state machine and SageMaker report it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from compilegate.domain import job_output, naming
from compilegate.domain.argument_text import decoded_document
from compilegate.domain.decision import SHADOW, Decision, Verdict
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError
from compilegate.domain.failures import COMPLETED, STOPPED, explain_job
from compilegate.domain.judging.evidence import FullRun, SpeedRun
from compilegate.domain.judging.evidence_file import read_full_run, read_speed_run
from compilegate.domain.judging.probation import Judge
from compilegate.domain.optional import with_known
from compilegate.domain.outside import shorten
from compilegate.domain.planning.arms import ArmPlan, arm_of, controls_of, measured_by
from compilegate.domain.planning.rounds import speed_job_seconds
from compilegate.domain.reasons import Reason
from compilegate.domain.trial.evidence import ArmRun, JobRecord, TrialEvidence, TrialRecords
from compilegate.domain.workload.model import BASELINE, job_seconds

# What the state machine reports where nothing explained how a run ended.
UNKNOWN = "Unknown"
ARM = re.compile(r"arm_\d+")
# A job that is asked to stop may take as long.
STOP_SECONDS = 120
NO_REASON = "no reason given"


@dataclass(frozen=True)
class OutputRuns:
    """What a completed job left: segments by arm, one or more full runs, or why none counts.

    The runs of ``pairs`` go by their place and arm.
    """

    segments: tuple[tuple[str, SpeedRun], ...] = ()
    full_run: FullRun | None = None
    pairs: Mapping[tuple[int, str], FullRun] = field(default_factory=dict)
    unreadable: InvalidEvidenceError | None = None


@dataclass(frozen=True)
class EndedJob:
    """One job of a trial that has ended; nothing of it is kept yet.

    ``infrastructure``: the cloud could not run it. ``described`` is SageMaker's description, empty
    where it never saw the job. ``asked_arms`` are the arms that a speed job on nodes of its own was
    asked to measure. ``output`` is read only of a job that completed, or failed with a full run,
    and is not recorded yet. ``waited``: the account's quota left no room for it.
    """

    run: naming.RunId
    job: str
    status: str
    reason: str | None = None
    infrastructure: bool = False
    timed_out: bool = False
    waited: bool = False
    stopped_by_trial: bool = False
    described: Mapping[str, Any] = field(default_factory=dict)
    asked_arms: tuple[str, ...] = ()
    output: OutputRuns = OutputRuns()

    @classmethod
    def from_event(cls, outcome: Mapping[str, Any]) -> Self:
        """Read an outcome as the state machine passes it along."""
        return cls(
            run=naming.parse_run(str(outcome["run"])),
            job=str(outcome["job"]),
            status=str(outcome["status"]),
            reason=outcome.get("reason"),
            infrastructure=bool(outcome.get("infrastructure")),
            timed_out=bool(outcome.get("timed_out")),
            waited=bool(outcome.get("waited")),
        )

    @classmethod
    def failed(cls, run: naming.RunId, job: str, cause: str) -> Self:
        """One that did not complete; ``cause`` is its description as JSON, or why it has none."""
        end = explain_job(cause)
        return cls(run, job, end.status, end.reason, end.infrastructure, end.timed_out)

    def to_outcome(self) -> dict[str, Any]:
        """For the state machine."""
        failure = {"infrastructure": self.infrastructure, "timed_out": self.timed_out}
        return {
            "run": self.run.text,
            "job": self.job,
            "status": self.status,
            "reason": self.reason,
            **({} if self.status == COMPLETED else failure),
            **({"waited": True} if self.waited else {}),
        }

    def with_description(self, described: Mapping[str, Any]) -> Self:
        """The job as SageMaker describes it, which says how it ended where nothing else did."""
        ended, name = self, self.job
        if self.status == UNKNOWN:
            if not described:
                ended = self.failed(self.run, name, "the job could not be started")
            elif described["TrainingJobStatus"] == COMPLETED:
                ended = replace(self, status=COMPLETED, reason=None)
            else:
                ended = self.failed(self.run, name, json.dumps(dict(described), default=str))
        return replace(ended, described=described)

    @property
    def was_stopped(self) -> bool:
        """Whether somebody stopped it; a job that reached a limit failed."""
        return self.status == STOPPED and not self.infrastructure and not self.timed_out

    @property
    def stopped_by_others(self) -> bool:
        """Whether somebody stopped it, and not the trial itself."""
        return self.was_stopped and not self.stopped_by_trial

    @property
    def is_lost(self) -> bool:
        """Whether its end says nothing about the arm: it was stopped, or could not be run."""
        return self.was_stopped or self.infrastructure

    @property
    def ended_examined(self) -> bool:
        """Whether its full run was complete, and the job ended in the equivalence check."""
        run = self.output.full_run
        return run is not None and run.finished and run.record.get("examining") is True

    @property
    def arms_to_measure(self) -> tuple[str, ...]:
        """The arms of which a completed speed job must leave a segment, by its description."""
        if self.status != COMPLETED or not self.run.is_speed:
            return ()
        return asked_arms(self.described.get("HyperParameters") or {})

    def cut_off(self, max_runtime_hours: float) -> bool:
        """Whether it reached a limit that the budget set, below the workload's own."""
        if not self.timed_out:
            return False
        own = job_seconds(max_runtime_hours)
        parameters = self.described.get("HyperParameters") or {}
        if self.run.is_speed and "blocks" in parameters:  # follows its segments
            arms = sum(key.startswith("arm_") for key in parameters)
            blocks = int(parameters["blocks"])
            own = speed_job_seconds(max_runtime_hours, arms=arms, blocks=blocks)
        limit = (self.described.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds", own)
        return bool(limit < own)


def asked_arms(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the arms that a speed job's hyperparameters ask for, as speed_request writes it."""
    described = [text for name, text in sorted(parameters.items()) if ARM.fullmatch(name)]
    return tuple(str(decoded_document(json.loads(text))["name"]) for text in described)


def billable_seconds(described: Mapping[str, Any], now: int) -> float:
    """What SageMaker bills, or will bill at most for a job that is being stopped."""
    billable, started = described.get("BillableTimeInSeconds"), described.get("TrainingStartTime")
    if billable is not None or not isinstance(started, datetime):
        return float(billable or 0)
    ended = described.get("TrainingEndTime")
    end = ended.timestamp() if ended else now + STOP_SECONDS
    return max(end - started.timestamp(), 0.0)


# What the jobs of a round came to, as records: the runs that they left, or why there are none.


def judge_with(
    ended: Sequence[EndedJob], evidence: TrialEvidence, judge: Judge, *, trial: str
) -> tuple[TrialEvidence, Decision]:
    """The evidence with these jobs, and its decision; what breaks the contract is ``invalid``.

    Controls come last: each is accepted only if all of the evidence can be judged with it.
    """
    new = [job for job in ended if job.job not in evidence.records.with_runs]
    controls = [job for job in new if controls_of(job.run, evidence.plan.arms)]
    try:
        for job in new:
            if job not in controls:
                runs = tuple(_runs(job, evidence))
                left = {arm for arm, _ in runs}
                unmeasured = tuple(arm for arm in job.arms_to_measure if arm not in left)
                record = JobRecord(job.job, runs=runs, unmeasured=unmeasured)
                evidence = evidence.with_records(record)
        for job in controls:
            evidence = _with_control(job, evidence, judge)
        return evidence, judge(evidence.to_evidence())
    except InvalidEvidenceError as error:
        name, stage = evidence.workload.name, "quality" if evidence.next_order else "speed"
        reasons = [Reason(error.code, str(error))]
        return evidence, Decision.of_this_judge(
            name, f"{trial}-invalid", stage, Verdict.INVALID, reasons
        )


def usd_of(
    run: naming.RunId, described: Mapping[str, Any], arms: Sequence[ArmPlan], *, now: int
) -> float:
    """What the job of a run has cost: billable seconds are the cluster's wall clock."""
    return billable_seconds(described, now) / 3600 * arm_of(run, arms).usd_per_hour


def spent_on(
    jobs: Mapping[str, Mapping[str, Any]],
    records: TrialRecords,
    arms: Sequence[ArmPlan],
    *,
    of: tuple[str, str],
    now: int,
) -> float:
    """What a trial, ``of`` a workload, has cost: its described jobs, and what else is recorded."""
    prices = {one.job: usd for one, usd in with_known(records.jobs, lambda one: one.usd)}
    for job, run in with_known(jobs, lambda job: naming.job_run(*of, job)):
        prices[job] = usd_of(run, jobs[job], arms, now=now)
    return math.fsum(prices.values())


def _runs(job: EndedJob, evidence: TrialEvidence) -> Iterable[ArmRun]:
    """The runs of a job that decides; raises InvalidEvidenceError for what is not its own.

    Where a job was stopped, or cut off by the budget, there are none: if the judge still needs the
    run, it requests it again.
    """
    if job.is_lost or job.cut_off(evidence.workload.training.max_runtime_hours):
        return ()
    parameters = job.described.get("HyperParameters") or {}
    if job.run.pairs and "runs" in parameters:
        return _paired_runs(job, evidence, decoded_document(json.loads(parameters["runs"])))
    if job.status != COMPLETED and not job.ended_examined:
        return _failed_runs(job, evidence)
    if job.output.unreadable is not None:
        raise job.output.unreadable
    if job.run.is_speed:
        return _own_segments(job, evidence)
    return [(arm_of(job.run, evidence.plan.arms).name, _full_run(job, evidence))]


def _own_segments(job: EndedJob, evidence: TrialEvidence) -> tuple[ArmRun, ...]:
    """Every segment of a speed job; raises InvalidEvidenceError for those of another job."""
    segments = job.output.segments
    if not segments:
        raise InvalidEvidenceError(f"{job.job} completed and left no evidence of any block")
    arms = evidence.plan.arms
    names = measured_by(job.run, arms) or [arm.name for arm in arms]
    for arm, run in segments:
        if arm not in names or job.run.block not in (None, run.block):
            raise InvalidEvidenceError(
                f"{job.job} left evidence of {arm} in block {run.block}, which is not its own"
            )
    steps = [seconds for _, run in segments for seconds in run.step_seconds]
    job_output.check_steps(job.described, math.fsum(steps), shortest=min(steps, default=math.inf))
    return segments


def _full_run(job: EndedJob, evidence: TrialEvidence) -> FullRun:
    run = job.output.full_run
    if run is None:
        raise InvalidEvidenceError(f"{job.job} completed and left no evidence of its run")
    _check_full_run(job, run, job.run.seed)
    seconds = job_output.trained_seconds(job.described)
    return run.recorded_as(order=evidence.next_order, job_seconds=seconds)


def _check_full_run(job: EndedJob, run: FullRun, seed: int | None) -> None:
    if run.seed != seed:
        raise InvalidEvidenceError(
            f"{job.job} was asked to train with seed {seed} and recorded "
            f"{run.seed}: runs of a script that ignores its seed do not show chance"
        )
    job_output.check_run(job.described, run.wall_seconds, run.record)


def _paired_runs(
    job: EndedJob, evidence: TrialEvidence, asked: Sequence[tuple[str, int, int]]
) -> Iterator[ArmRun]:
    """The whole runs of a job of pairs as they were asked for, arm, seed and replicate.

    Each run fails by itself, so that a job that failed was ended in the last one that it began.
    """
    if job.status == COMPLETED and job.output.unreadable:
        raise job.output.unreadable
    left, walls = dict(job.output.pairs), list[float]()
    for place, (arm, seed, _) in enumerate(asked):
        run, order = left.pop((place, arm), None), evidence.next_order + place
        if run and run.finished:
            _check_full_run(job, run, seed)
            walls += [run.wall_seconds] if run.wall_seconds else []
        elif not run and job.status == COMPLETED:
            raise InvalidEvidenceError(f"{job.job} completed and left no run {place} of {arm}")
        yield arm, (run or _failed_run(job, order)).recorded_as(order=order, seed=seed)
        if job.status != COMPLETED and not left and not (run and run.finished):
            break
    if left:
        raise InvalidEvidenceError(f"{job.job} left evidence of runs that are not its own")
    job_output.check_steps(job.described, math.fsum(walls), shortest=math.inf)


def _failed_runs(job: EndedJob, evidence: TrialEvidence) -> Iterator[ArmRun]:
    """A crash is a result. Without its baseline a block has nothing to compare with."""
    run = job.run
    if not run.is_speed:
        yield arm_of(run, evidence.plan.arms).name, _failed_run(job, evidence.next_order)
    elif run.block is None:
        yield BASELINE, _failed_block(job, evidence.next_block)
    else:
        for arm in [BASELINE] if run.group == 0 else job.asked_arms:
            yield arm, _failed_block(job, run.block)


def _failed_run(job: EndedJob, order: int) -> FullRun:
    return read_full_run({
        "stage": "quality", "mode": SHADOW, "order": order, "seed": job.run.seed, "metric": None,
        "wall_seconds": None, "finished": False, "job": job.job, "reason": job.reason or NO_REASON,
    })  # fmt: skip


def _failed_block(job: EndedJob, block: int, reason: str | None = None) -> SpeedRun:
    reason = reason or job.reason or NO_REASON
    return read_speed_run({
        "stage": "speed", "block": block, "node": job.job, "job": job.job, "finished": False,
        "compile_seconds": 0.0, "step_seconds": [], "reason": shorten(reason),
    })  # fmt: skip


def _with_control(job: EndedJob, evidence: TrialEvidence, judge: Judge) -> TrialEvidence:
    """Evidence with a control's job; whatever is wrong with it leaves the control unmeasured."""
    reason = job.reason
    if job.status == COMPLETED:
        try:
            if job.output.unreadable is not None:
                raise job.output.unreadable
            measured = evidence.with_records(JobRecord(job.job, runs=_own_segments(job, evidence)))
            judge(measured.to_evidence())
        except CompilegateError as error:
            reason = str(error)
        else:
            return measured
    block = _failed_block(job, job.run.block or 0, reason)
    runs = tuple((arm, block) for arm in job.asked_arms)
    return evidence.with_records(JobRecord(job.job, runs=runs))
