"""A job of a round has ended: says how, and stops what of the round cannot change the verdict.

After a full run, crashed or not, the judge takes an interim look at the evidence: where it rejects
an arm, that arm's other jobs are stopped, and requests that have not started are withdrawn. Where
the cloud could not run a job, or somebody else stopped it, the round is stopped; not so for a
control, which decides nothing, nor where the account's quota left no room for a job for hours,
which says nothing about the others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from compilegate.domain import naming
from compilegate.domain.errors import BROKEN, CompilegateError, InvalidEvidenceError
from compilegate.domain.failures import COMPLETED, ENDED, IN_PROGRESS
from compilegate.domain.judging.judge import judge as shipped_judge
from compilegate.domain.judging.probation import Judge
from compilegate.domain.naming import RunId
from compilegate.domain.trial.evidence import TrialEvidence, assemble, read_records
from compilegate.domain.trial.jobs import UNKNOWN, EndedJob, OutputRuns, asked_arms
from compilegate.domain.trial.judge_round import RoundEffect, lost_arms, round_effect
from compilegate.ports import ObjectStore, Services
from compilegate.usecases.records import OpenTrial, Trial, find_record, load_plan, open_trial
from compilegate.usecases.trial.stop_jobs import stop_as_own, stop_round, stopped_by_trial, withdraw

# Reads how the jobs of a trial ended: from SageMaker and what the jobs left.

logger = logging.getLogger("compilegate")


def ended_job(
    job: EndedJob, opened: OpenTrial, services: Services, *, recorded: Collection[str]
) -> EndedJob:
    """The job with all that is known of it; what it left is not read where it is ``recorded``."""
    job = job.with_description(services.jobs.describe(job.job))
    if job.was_stopped:
        own = stopped_by_trial(job.job, opened.trial, services.store)
        job = replace(job, stopped_by_trial=own)
    if job.job in recorded:
        return job
    if job.run.group and (job.status != COMPLETED or job.controls(opened.plan.arms)):
        job = replace(job, asked_arms=_asked_arms(job.run, opened, services.store))
    if job.status == COMPLETED:
        job = replace(job, output=_output(job, opened, services))
    return job


def _asked_arms(run: naming.RunId, opened: OpenTrial, store: ObjectStore) -> tuple[str, ...]:
    """Names of the arms that a speed job was asked to measure, none where it was withdrawn."""
    key = naming.request_key(opened.trial.workload, opened.trial.trial, run.text)
    request = json.loads(store.get(key))
    if naming.WITHDRAWN in request:
        return ()
    return asked_arms(request["HyperParameters"])


def _output(job: EndedJob, opened: OpenTrial, services: Services) -> OutputRuns:
    """The runs that a completed job left; no output but a control's excuses a lost connection."""
    try:
        return _runs(job, opened, services)
    except InvalidEvidenceError as error:
        return OutputRuns(unreadable=error)
    except Exception as error:
        if not isinstance(error, BROKEN) and not job.controls(opened.plan.arms):
            raise
        logger.exception("no evidence of %s", job.job)
        own = isinstance(error, CompilegateError)
        why = str(error) if own else f"its evidence is broken: {error}"
        return OutputRuns(unreadable=InvalidEvidenceError(why))


def _runs(job: EndedJob, opened: OpenTrial, services: Services) -> OutputRuns:
    key = naming.job_output_key(opened.trial.workload, opened.trial.trial, job.job)
    uri, outputs = f"s3://{services.store.bucket}/{key}", services.outputs
    if job.run.arm_index is None:
        return OutputRuns(segments=tuple(outputs.segments(uri, job.job)))
    metric = opened.spec.workload.quality.metric
    return OutputRuns(full_run=outputs.full_run(uri, job.job, metric))


@dataclass(frozen=True)
class JobEnded:
    """What the state machine tells of a job's end.

    ``error`` is that of its task, None where it did not fail. ``runs`` are those of the round.
    """

    trial: Trial
    job: EndedJob
    error: str | None
    runs: tuple[RunId, ...]

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """Read the step's input."""
        run, name = naming.parse_run(str(event["run"])), str(event["job"])
        job = EndedJob(run, name, COMPLETED)
        if event.get("status") != COMPLETED:
            job = EndedJob.failed(run, name, str(event.get("cause", "")))
        runs = tuple(naming.parse_run(str(one["run"])) for one in event["runs"])
        return cls(Trial.from_event(event), job, event.get("error"), runs)


@dataclass(frozen=True)
class RoundSoFar:
    """A round under way: the jobs with their status by run, and the evidence so far."""

    jobs: Mapping[RunId, tuple[str, str]]
    ended: tuple[EndedJob, ...]
    evidence: TrialEvidence


def on_job_ended(
    event: Mapping[str, Any], *, services: Services, judge: Judge = shipped_judge
) -> dict[str, Any]:
    """The run's outcome for JudgeArms; ``settled_arms`` are those that the look rejected.

    Safe to repeat: the answer depends on the evidence, not on what is still running.
    """
    end = JobEnded.from_event(event)
    own = end.job.was_stopped and stopped_by_trial(end.job.job, end.trial, services.store)
    job = replace(end.job, stopped_by_trial=own)
    arms = load_plan(services.store, end.trial).arms if job.run.group else ()
    effect = round_effect(job, arms, error=end.error, jobs_in_round=len(end.runs))
    if effect is RoundEffect.STOP:
        stop_round(end.trial, end.runs, services=services)
    lost = _look_early(replace(end, job=job), services, judge) if effect is RoundEffect.LOOK else []
    return {**job.to_outcome(), "settled_arms": lost}


def _look_early(end: JobEnded, services: Services, judge: Judge) -> list[int]:
    """The look can only save money: an error in it must not lose the run."""
    try:
        so_far = _read(end, services)
        lost = lost_arms(so_far.ended, so_far.jobs, so_far.evidence, judge, trial=end.trial.trial)
        _stop(lost, so_far, end, services)
    except Exception:
        logger.exception("no early look at %s", end.job.job, extra={"run": end.job.run.text})
        return []
    return sorted(lost)


def _read(end: JobEnded, services: Services) -> RoundSoFar:
    """The round's jobs in its order; of several retries of a run the last."""
    trial, own, last = end.trial, end.job, dict[RunId, tuple[str, str]]()
    opened = open_trial(services.store, trial)
    statuses = services.jobs.statuses(naming.trial_job_prefix(trial.workload, trial.trial))
    for job in sorted(statuses):
        run = naming.job_run(trial.workload, trial.trial, job)
        if run is not None:
            last[run] = (job, statuses[job])
    jobs = {run: last[run] for run in end.runs if run in last}
    jobs[own.run] = (own.job, own.status)
    records = read_records(find_record(services.store, trial, "evidence"))
    ended = [
        own if run == own.run else EndedJob(run, job, UNKNOWN)
        for run, (job, status) in jobs.items()
        if status in ENDED
    ]
    return RoundSoFar(
        jobs=jobs,
        ended=tuple(ended_job(one, opened, services, recorded=records.with_runs) for one in ended),
        evidence=assemble(opened.spec.workload, opened.plan, records),
    )


def _stop(lost: set[int], so_far: RoundSoFar, end: JobEnded, services: Services) -> None:
    running = [
        job
        for run, (job, status) in so_far.jobs.items()
        if status == IN_PROGRESS and run.arm_index in lost
    ]
    waiting = [run for run in end.runs if run not in so_far.jobs and run.arm_index in lost]
    withdraw(waiting, end.trial, services=services)
    stop_as_own(running, end.trial, services=services)
