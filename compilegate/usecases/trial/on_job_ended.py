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
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError, NotFoundError
from compilegate.domain.failures import COMPLETED, IN_PROGRESS, RESOURCE_LIMIT_ERROR
from compilegate.domain.judging.judge import judge as shipped_judge
from compilegate.domain.judging.probation import Judge
from compilegate.domain.naming import RunId
from compilegate.domain.outside import BROKEN
from compilegate.domain.planning.arms import controls_of
from compilegate.domain.trial.evidence import TrialEvidence, read_records
from compilegate.domain.trial.jobs import UNKNOWN, EndedJob, OutputRuns, asked_arms
from compilegate.domain.trial.judge_round import RoundEffect, lost_arms, round_effect
from compilegate.ports import ObjectStore, Services
from compilegate.usecases.records import (
    OpenTrial,
    Trial,
    find_record,
    load_plan,
    load_spec,
    to_json,
)
from compilegate.usecases.started_jobs import names_of_runs

# Stops jobs, those that have not started included, and records which ones.


def stop_runs(trial: Trial, runs: Collection[RunId], *, services: Services) -> None:
    """Stop the jobs of these runs, and take back the requests of those that have none yet.

    For the trial's own reasons, which are recorded before a job can end. A run that has read its
    request already still starts.
    """
    at = {"at": services.clock.now()}
    jobs = services.jobs.describe_all(names_of_runs(trial, runs))
    started = {naming.job_run(trial.workload, trial.trial, job) for job in jobs}
    for run in runs:
        if run not in started:
            job = f"{naming.job_base(trial.workload, trial.trial, run.text)}{naming.FIRST_TRY}"
            services.store.put(naming.stop_key(trial.workload, trial.trial, job), to_json(at))
            request = naming.request_key(trial.workload, trial.trial, run.text)
            services.store.put(request, to_json({naming.WITHDRAWN: at}))
    for job, described in jobs.items():
        if described["TrainingJobStatus"] == IN_PROGRESS:
            services.store.put(naming.stop_key(trial.workload, trial.trial, job), to_json(at))
            services.jobs.stop(job)


def with_own_stop(job: EndedJob, trial: Trial, store: ObjectStore) -> EndedJob:
    """The job; of one that was stopped, whether it was the trial that stopped it."""
    if not job.was_stopped:
        return job
    try:
        store.get(naming.stop_key(trial.workload, trial.trial, job.job))
    except NotFoundError:
        return job
    return replace(job, stopped_by_trial=True)


# Reads how the jobs of a trial ended: from SageMaker and what the jobs left.

logger = logging.getLogger("compilegate")


def ended_job(
    job: EndedJob, opened: OpenTrial, services: Services, *, recorded: Collection[str]
) -> EndedJob:
    """The job with all that is known of it; what it left is not read where it is ``recorded``."""
    job = job.with_description(services.jobs.describe(job.job))
    job = with_own_stop(job, opened.trial, services.store)
    if job.job in recorded:
        return job
    if job.run.group and (job.status != COMPLETED or controls_of(job.run, opened.plan.arms)):
        # Those that it was asked to measure, none where it was withdrawn.
        key = naming.request_key(opened.trial.workload, opened.trial.trial, job.run.text)
        request = json.loads(services.store.get(key))
        asked = () if naming.WITHDRAWN in request else asked_arms(request["HyperParameters"])
        job = replace(job, asked_arms=asked)
    if job.status == COMPLETED or not (job.run.is_speed or job.is_lost):
        job = replace(job, output=_output(job, opened, services))
    return job


def _output(job: EndedJob, opened: OpenTrial, services: Services) -> OutputRuns:
    """The runs that a job left; no output but a control's excuses a lost connection."""
    key = naming.job_output_key(opened.trial.workload, opened.trial.trial, job.job)
    uri, outputs = f"s3://{services.store.bucket}/{key}", services.outputs
    try:
        if job.run.is_speed:
            return OutputRuns(segments=tuple(outputs.segments(uri, job.job)))
        quality = opened.spec.workload.quality
        if job.run.pairs:
            return OutputRuns(pairs=outputs.paired_runs(uri, job.job, quality))
        return OutputRuns(full_run=outputs.full_run(uri, job.job, quality))
    except InvalidEvidenceError as error:
        return OutputRuns(unreadable=error)
    except Exception as error:
        if not isinstance(error, BROKEN) and not controls_of(job.run, opened.plan.arms):
            raise
        logger.exception("no evidence of %s", job.job)
        own = isinstance(error, CompilegateError)
        why = str(error) if own else f"its evidence is broken: {error}"
        return OutputRuns(unreadable=InvalidEvidenceError(why))


def on_job_ended(
    event: Mapping[str, Any], *, services: Services, judge: Judge = shipped_judge
) -> dict[str, Any]:
    """The run's outcome for JudgeArms; ``rejected_arms`` are those that the look rejected.

    Safe to repeat: the answer depends on the evidence, not on what is still running.
    """
    trial, name = Trial.from_event(event), str(event["job"])
    run, *runs = (naming.parse_run(str(one["run"])) for one in (event, *event["runs"]))
    job = EndedJob(run, name, COMPLETED)
    if event.get("status") != COMPLETED:
        job = EndedJob.failed(run, name, str(event.get("cause", "")))
        job = replace(job, waited=event.get("error") == RESOURCE_LIMIT_ERROR)
    job, lost = with_own_stop(job, trial, services.store), list[int]()
    arms = load_plan(services.store, trial).arms if run.group else ()
    effect = round_effect(job, arms, jobs_in_round=len(runs))
    if effect is RoundEffect.STOP:
        stop_runs(trial, runs, services=services)
    if effect is RoundEffect.LOOK:
        try:  # it can only save money: an error in it must not lose the run
            lost = sorted(_look_early(job, runs, trial, services, judge))
        except Exception:
            logger.exception("no early look at %s", name, extra={"run": run.text})
    return {**job.to_outcome(), "rejected_arms": lost}


def _look_early(
    own: EndedJob, runs: Sequence[RunId], trial: Trial, services: Services, judge: Judge
) -> set[int]:
    """Stop what the arms that have lost would still make; returns these arms."""
    store = services.store
    opened = OpenTrial(trial, load_spec(store, trial), load_plan(store, trial))
    ended = _ended_so_far(own.job, runs, trial, services)
    records = read_records(find_record(store, trial, "evidence"))
    seen = [own if job == own.job else EndedJob(run, job, UNKNOWN) for run, job in ended.items()]
    lost = lost_arms(
        tuple(ended_job(one, opened, services, recorded=records.with_runs) for one in seen),
        runs,
        TrialEvidence(opened.spec.workload, opened.plan, records),
        judge,
        trial=trial.trial,
    )
    others = [run for run in runs if run.arm_index in lost and run not in ended]
    stop_runs(trial, others, services=services)
    return lost


def _ended_so_far(
    job: str, runs: Sequence[RunId], trial: Trial, services: Services
) -> dict[RunId, str]:
    """The round's runs whose jobs have ended, with these jobs: each leaves a mark as it ends.

    Of two that end at once the later one sees both.
    """
    prefix = naming.ends_prefix(trial.workload, trial.trial)
    services.store.put(f"{prefix}{job}", to_json({"at": services.clock.now()}))
    jobs = (key.removeprefix(prefix) for key in services.store.keys(prefix))
    by_run = {naming.job_run(trial.workload, trial.trial, job): job for job in jobs}
    return {run: by_run[run] for run in runs if run in by_run}
