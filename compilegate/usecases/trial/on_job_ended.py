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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError
from compilegate.domain.failures import COMPLETED, ENDED, IN_PROGRESS
from compilegate.domain.judging.judge import judge as shipped_judge
from compilegate.domain.judging.probation import Judge
from compilegate.domain.naming import RunId
from compilegate.domain.outside import BROKEN
from compilegate.domain.trial.evidence import TrialEvidence, read_records
from compilegate.domain.trial.jobs import UNKNOWN, EndedJob, OutputRuns, asked_arms
from compilegate.domain.trial.judge_round import RoundEffect, lost_arms, round_effect
from compilegate.ports import Services
from compilegate.usecases.records import OpenTrial, Trial, find_record, load_plan, load_spec
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
        # Those that it was asked to measure, none where it was withdrawn.
        key = naming.request_key(opened.trial.workload, opened.trial.trial, job.run.text)
        request = json.loads(services.store.get(key))
        is_withdrawn = naming.WITHDRAWN in request
        asked = () if is_withdrawn else asked_arms(request["HyperParameters"])
        job = replace(job, asked_arms=asked)
    if job.status == COMPLETED:
        job = replace(job, output=_output(job, opened, services))
    return job


def _output(job: EndedJob, opened: OpenTrial, services: Services) -> OutputRuns:
    """The runs that a completed job left; no output but a control's excuses a lost connection."""
    key = naming.job_output_key(opened.trial.workload, opened.trial.trial, job.job)
    uri, outputs = f"s3://{services.store.bucket}/{key}", services.outputs
    try:
        if job.run.arm_index is None:
            return OutputRuns(segments=tuple(outputs.segments(uri, job.job)))
        metric = opened.spec.workload.quality.metric
        return OutputRuns(full_run=outputs.full_run(uri, job.job, metric))
    except InvalidEvidenceError as error:
        return OutputRuns(unreadable=error)
    except Exception as error:
        if not isinstance(error, BROKEN) and not job.controls(opened.plan.arms):
            raise
        logger.exception("no evidence of %s", job.job)
        own = isinstance(error, CompilegateError)
        why = str(error) if own else f"its evidence is broken: {error}"
        return OutputRuns(unreadable=InvalidEvidenceError(why))


def on_job_ended(
    event: Mapping[str, Any], *, services: Services, judge: Judge = shipped_judge
) -> dict[str, Any]:
    """The run's outcome for JudgeArms; ``settled_arms`` are those that the look rejected.

    Safe to repeat: the answer depends on the evidence, not on what is still running.
    """
    trial, name = Trial.from_event(event), str(event["job"])
    run, *runs = (naming.parse_run(str(one["run"])) for one in (event, *event["runs"]))
    job = EndedJob(run, name, COMPLETED)
    if event.get("status") != COMPLETED:
        job = EndedJob.failed(run, name, str(event.get("cause", "")))
    own = job.was_stopped and stopped_by_trial(name, trial, services.store)
    job, lost = replace(job, stopped_by_trial=own), list[int]()
    arms = load_plan(services.store, trial).arms if run.group else ()
    effect = round_effect(job, arms, error=event.get("error"), jobs_in_round=len(runs))
    if effect is RoundEffect.STOP:
        stop_round(trial, runs, services=services)
    if effect is RoundEffect.LOOK:
        try:  # it can only save money: an error in it must not lose the run
            lost = sorted(_look_early(job, runs, trial, services, judge))
        except Exception:
            logger.exception("no early look at %s", name, extra={"run": run.text})
    return {**job.to_outcome(), "settled_arms": lost}


def _look_early(
    own: EndedJob, runs: Sequence[RunId], trial: Trial, services: Services, judge: Judge
) -> set[int]:
    """Stop what the arms that have lost would still make; returns these arms."""
    store, last = services.store, dict[RunId, tuple[str, str]]()
    opened = OpenTrial(trial, load_spec(store, trial), load_plan(store, trial))
    statuses = services.jobs.statuses(naming.trial_job_prefix(trial.workload, trial.trial))
    for name in sorted(statuses):  # of several retries of a run the last counts
        run = naming.job_run(trial.workload, trial.trial, name)
        if run is not None:
            last[run] = (name, statuses[name])
    jobs = {run: last[run] for run in runs if run in last}
    jobs[own.run] = (own.job, own.status)
    records = read_records(find_record(services.store, trial, "evidence"))
    ended = [
        own if run == own.run else EndedJob(run, name, UNKNOWN)
        for run, (name, status) in jobs.items()
        if status in ENDED
    ]
    lost = lost_arms(
        tuple(ended_job(one, opened, services, recorded=records.with_runs) for one in ended),
        jobs,
        TrialEvidence(opened.spec.workload, opened.plan, records),
        judge,
        trial=trial.trial,
    )
    running = [
        name
        for run, (name, status) in jobs.items()
        if status == IN_PROGRESS and run.arm_index in lost
    ]
    waiting = [run for run in runs if run not in jobs and run.arm_index in lost]
    withdraw(waiting, trial, services=services)
    stop_as_own(running, trial, services=services)
    return lost
