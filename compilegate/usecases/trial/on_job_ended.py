"""A job of a round has ended: says how, and stops what of the round cannot change the verdict.

After a full run, crashed or not, the judge takes an interim look at the evidence: where it rejects
an arm, that arm's other jobs are stopped, and requests that have not started are withdrawn. Where
the cloud could not run a job, or somebody else stopped it, the round is stopped; not so for a
control, which decides nothing, nor where the account's quota left no room for a job for hours,
which says nothing about the others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import COMPLETED, ENDED
from compilegate.domain.judging.judge import judge as shipped_judge
from compilegate.domain.judging.production import Judge
from compilegate.domain.naming import RunId
from compilegate.domain.trial.evidence import TrialEvidence, assemble
from compilegate.domain.trial.job_records import read_records
from compilegate.domain.trial.jobs import IN_PROGRESS, UNKNOWN, EndedJob
from compilegate.domain.trial.judge_round import RoundEffect, lost_arms, round_effect
from compilegate.ports import Services
from compilegate.usecases.records import Trial, find_record, load_plan, open_trial
from compilegate.usecases.trial.ended_jobs import ended_job
from compilegate.usecases.trial.stop_jobs import (
    stop_as_own,
    stop_round,
    stopped_by_trial,
    withdraw,
)

logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class RoundSoFar:
    """A round under way: its runs by id with job and status, and the evidence so far."""

    jobs: Mapping[str, tuple[str, str]]
    ended: tuple[EndedJob, ...]
    evidence: TrialEvidence

    @property
    def runs(self) -> list[RunId]:
        """The runs that have a job."""
        return [naming.parse_run(run) for run in self.jobs]


def on_job_ended(
    event: Mapping[str, Any], *, services: Services, judge: Judge = shipped_judge
) -> dict[str, Any]:
    """The run's outcome for JudgeArms; ``settled_arms`` are those that the look rejected.

    Safe to repeat: the answer depends on the evidence, not on what is still running.
    """
    trial, job = Trial.from_event(event), _job(event)
    own = job.was_stopped and stopped_by_trial(job.job, trial, services.store)
    job = replace(job, stopped_by_trial=own)
    arms = load_plan(services.store, trial).arms if job.run.group else ()
    effect = round_effect(job, arms, error=event.get("error"), jobs_in_round=len(event["runs"]))
    if effect is RoundEffect.STOP:
        stop_round(trial, event["runs"], services=services)
    lost = _look_early(event, job, services, judge) if effect is RoundEffect.LOOK else []
    return {**job.to_outcome(), "settled_arms": lost}


def _job(event: Mapping[str, Any]) -> EndedJob:
    run, job = naming.parse_run(str(event["run"])), str(event["job"])
    if event.get("status") == COMPLETED:
        return EndedJob(run, job, COMPLETED)
    return EndedJob.failed(run, job, str(event.get("cause", "")))


def _look_early(
    event: Mapping[str, Any], job: EndedJob, services: Services, judge: Judge
) -> list[int]:
    """The look can only save money: an error in it must not lose the run."""
    try:
        trial, so_far = Trial.from_event(event), _read(event, job, services)
        lost = lost_arms(so_far.ended, so_far.runs, so_far.evidence, judge, trial=trial.trial)
        _stop(lost, so_far, event, services)
    except Exception:
        logger.exception("no early look at %s", event["job"], extra={"run": event["run"]})
        return []
    return sorted(lost)


def _read(event: Mapping[str, Any], own: EndedJob, services: Services) -> RoundSoFar:
    """The round's jobs in its order; of several retries of a run the last."""
    opened = open_trial(services.store, Trial.from_event(event))
    trial, last = opened.trial, dict[str, tuple[str, str]]()
    statuses = services.jobs.statuses(naming.trial_job_prefix(trial.workload, trial.trial))
    for job in sorted(statuses):
        run = naming.job_run(trial.workload, trial.trial, job)
        if run is not None:
            last[run.text] = (job, statuses[job])
    jobs = {run["run"]: last[run["run"]] for run in event["runs"] if run["run"] in last}
    jobs[own.run.text] = (own.job, own.status)
    records = read_records(find_record(services.store, trial, "evidence"))
    recorded = records.with_runs
    ended = [
        own if run == own.run.text else EndedJob(naming.parse_run(run), job, UNKNOWN)
        for run, (job, status) in jobs.items()
        if status in ENDED
    ]
    return RoundSoFar(
        jobs=jobs,
        ended=tuple(
            ended_job(one, opened, services.jobs, services.store, recorded=recorded)
            for one in ended
        ),
        evidence=assemble(opened.spec.workload, opened.plan, records),
    )


def _stop(lost: set[int], so_far: RoundSoFar, event: Mapping[str, Any], services: Services) -> None:
    trial = Trial.from_event(event)
    running = [
        job
        for run, (job, status) in so_far.jobs.items()
        if status == IN_PROGRESS and naming.parse_run(run).arm_index in lost
    ]
    waiting = [
        run
        for run in event["runs"]
        if run["run"] not in so_far.jobs and naming.parse_run(run["run"]).arm_index in lost
    ]
    withdraw(waiting, trial, services=services)
    stop_as_own(running, trial, services=services)
