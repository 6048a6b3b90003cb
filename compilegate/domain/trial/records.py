"""What the jobs of a round came to, as records: the runs that they left, or why there are none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compilegate.domain import job_clock
from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError
from compilegate.domain.failures import COMPLETED
from compilegate.domain.judging.evidence import FullRun, SpeedRun
from compilegate.domain.judging.evidence_file import read_full_run, read_speed_run
from compilegate.domain.judging.judge import judge as shipped_judge
from compilegate.domain.judging.production import Judge
from compilegate.domain.outside import shorten
from compilegate.domain.planning.speed_jobs import arm_of, measured_by
from compilegate.domain.reasons import Reason
from compilegate.domain.trial.evidence import TrialEvidence, to_evidence
from compilegate.domain.trial.job_records import ArmRun, JobRecord
from compilegate.domain.trial.jobs import EndedJob, OutputRuns, billable_seconds
from compilegate.domain.workload.model import BASELINE


@dataclass(frozen=True)
class JudgedEvidence:
    """Evidence with the jobs of a round, and what the judge says of it."""

    evidence: TrialEvidence
    decision: Decision


def judge_with(
    ended: Sequence[EndedJob], evidence: TrialEvidence, judge: Judge, *, trial: str
) -> JudgedEvidence:
    """The decision with these jobs recorded; what breaks the contract is ``invalid``.

    Controls come last: each is accepted only if all of the evidence can be judged with it.
    """
    arms = evidence.plan.arms
    try:
        for job in ended:
            if not job.controls(arms) and job.job not in evidence.jobs:
                runs = tuple(_runs(job, evidence))
                record = JobRecord(job.job, runs=runs, unmeasured=_unmeasured(job, runs))
                evidence = evidence.with_records(record)
        for job in ended:
            if job.controls(arms) and job.job not in evidence.jobs:
                evidence = _with_control(job, evidence)
        return JudgedEvidence(evidence, judge(to_evidence(evidence)))
    except InvalidEvidenceError as error:
        return JudgedEvidence(evidence, _invalid(error, evidence, trial))


def price_record(job: EndedJob, evidence: TrialEvidence, *, now: int) -> JobRecord:
    """What a job has cost: billable seconds are the cluster's wall clock."""
    rate = arm_of(job.run, evidence.plan.arms).usd_per_hour
    usd = billable_seconds(job.described, now) / 3600 * rate
    return JobRecord(job.job, usd=usd, at=now)


def _runs(job: EndedJob, evidence: TrialEvidence) -> Iterable[ArmRun]:
    """The runs of a job that decides; raises InvalidEvidenceError for what is not its own.

    Where a job was stopped, or cut off by the budget, there are none: if the judge still needs the
    run, it requests it again.
    """
    if not job.is_result or job.cut_off(evidence.workload.training.max_runtime_hours):
        return ()
    if job.status != COMPLETED:
        return _failed_runs(job, evidence)
    if job.run.arm_index is None:
        return _own_segments(job, evidence)
    return [(evidence.plan.arms[job.run.arm_index].name, _full_run(job, evidence))]


def _own_segments(job: EndedJob, evidence: TrialEvidence) -> tuple[ArmRun, ...]:
    """Every segment of a speed job; raises InvalidEvidenceError for those of another job."""
    segments = _output(job).segments
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
    job_clock.check_steps(job.described, math.fsum(steps), shortest=min(steps, default=None))
    return segments


def _unmeasured(job: EndedJob, runs: Iterable[ArmRun]) -> tuple[str, ...]:
    """The arms of a completed speed job of which it left no segment at all."""
    if job.status != COMPLETED or not job.run.is_speed:
        return ()
    left = {arm for arm, _ in runs}
    return tuple(arm for arm in job.described_arms if arm not in left)


def _full_run(job: EndedJob, evidence: TrialEvidence) -> FullRun:
    run = _output(job).full_run
    if run is None:
        raise InvalidEvidenceError(f"{job.job} completed and left no evidence of its run")
    if run.seed != job.run.seed:
        raise InvalidEvidenceError(
            f"{job.job} was asked to train with seed {job.run.seed} and recorded "
            f"{run.seed}: runs of a script that ignores its seed do not show chance"
        )
    job_clock.check_run(job.described, run.wall_seconds, run.record)
    return run.at(evidence.next_order).timed_by(job_clock.trained_seconds(job.described))


def _output(job: EndedJob) -> OutputRuns:
    if job.output.unreadable is not None:
        raise job.output.unreadable
    return job.output


def _failed_runs(job: EndedJob, evidence: TrialEvidence) -> Iterator[ArmRun]:
    """A crash is a result. Without its baseline a block has nothing to compare with."""
    run = job.run
    if run.arm_index is not None:
        yield evidence.plan.arms[run.arm_index].name, _failed_full_run(job, evidence.next_order)
    elif run.block is None:
        yield BASELINE, _failed_block(job, evidence.next_block)
    else:
        for arm in [BASELINE] if run.group == 0 else job.asked_arms:
            yield arm, _failed_block(job, run.block)


def _failed_full_run(job: EndedJob, order: int) -> FullRun:
    return read_full_run({
        "stage": "quality", "mode": "shadow", "order": order, "seed": job.run.seed,
        "metric": None, "wall_seconds": None, "finished": False, "job": job.job,
        "reason": job.reason or "no reason given",
    })  # fmt: skip


def _failed_block(job: EndedJob, block: int, reason: str | None = None) -> SpeedRun:
    reason = reason or job.reason or "no reason given"
    return read_speed_run({
        "stage": "speed", "block": block, "node": job.job, "job": job.job, "finished": False,
        "compile_seconds": 0.0, "step_seconds": [], "reason": shorten(reason),
    })  # fmt: skip


def _with_control(job: EndedJob, evidence: TrialEvidence) -> TrialEvidence:
    """Evidence with a control's job; whatever is wrong with it leaves the control unmeasured."""
    reason = job.reason
    if job.status == COMPLETED:
        try:
            measured = evidence.with_records(JobRecord(job.job, runs=_own_segments(job, evidence)))
            shipped_judge(to_evidence(measured))
        except CompilegateError as error:
            reason = str(error)
        else:
            return measured
    block = _failed_block(job, job.run.block or 0, reason)
    runs = tuple((arm, block) for arm in job.asked_arms)
    return evidence.with_records(JobRecord(job.job, runs=runs))


def _invalid(error: InvalidEvidenceError, evidence: TrialEvidence, trial: str) -> Decision:
    return Decision(
        workload=evidence.workload.name,
        decision_id=f"{trial}-invalid",
        judge_version=JUDGE_VERSION,
        stage="quality" if evidence.next_order else "speed",
        verdict=Verdict.INVALID,
        candidate=None,
        reasons=(Reason(error.code, str(error)),),
    )
