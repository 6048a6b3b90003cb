"""Records how a production job ended, and says what comes next.

The ledger's entry is written once: a repeated or late call reads it and answers the same.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.failures import ENDED, Ending, explain, job_end
from compilegate.domain.fields import Fields
from compilegate.domain.outside import BROKEN
from compilegate.domain.production.attempts import (
    FIRST_SECONDS,
    Attempt,
    attempt_number,
    attempt_of,
)
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.production.recorded_run import (
    FAILED,
    WAIT,
    EndedAttempt,
    attempt_outcome,
    attempt_run,
    is_first_pause,
    next_attempt,
    what_next,
)
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from compilegate.ports import Services, TrainingJobs
from compilegate.report.notifications.production import run_failed, run_waits
from compilegate.usecases.canary import close_after_run
from compilegate.usecases.job_output import describe
from compilegate.usecases.job_requests import JobSite
from compilegate.usecases.production.build_request import request_of, usd_per_hour
from compilegate.usecases.production.job_evidence import job_evidence, run_answer
from compilegate.usecases.production.record_team_run import record_team_run
from compilegate.usecases.records import Spec, spec_at

EXECUTION_FAILED = "FAILED"
logger = logging.getLogger("compilegate")


def record_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """``next`` is ``watch``, ``rerun``, ``wait``, ``failed`` or ``end``.

    ``event`` is the machine's after an attempt (workload, run, attempt, job, ``error`` and
    ``cause`` where its task failed, ``wait_seconds`` where its input says how long to wait), that
    of a team's job (workload, job), or Step Functions' own of an execution that ended badly.
    """
    if "detail" in event:
        return record_ended_execution(event["detail"], services=services)
    if "attempt" in event:
        return record_attempt(event, services=services)
    return record_team_run(event, services=services)


def record_attempt(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Read the attempt, record its run or its wait, and answer the machine.

    Raises StillTrainsError for a job that has not ended.
    """
    workload, run = str(event["workload"]), str(event["run"])
    past = history(services.ledger.entries(workload, ledger_keys.run_entries(run)))
    ended, spec = _read(event, past, services)
    outcome = attempt_outcome(replace(ended, twins=_twins(ended, services.jobs)))
    for stopped in outcome.stop:
        services.jobs.stop(stopped)
    stage, record = services.settings.stage, outcome.record
    if isinstance(record, CapacityWait):
        entry = services.ledger.put_once(workload, record.key, record.to_entry())
        return _waiting(CapacityWait.from_entry(entry), ended, stage)
    return _recorded(_write(record, spec, services), ended, stage)


def record_ended_execution(detail: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the jobs of an execution that was stopped, ran out of time or failed. Safe to repeat.

    ``detail`` is that of Step Functions' event. A job that trains continues after a failure of the
    machine, because its model is needed; where a person stopped the execution, or its time was up,
    the job is stopped. Returns which jobs were recorded, and which continue unattended.
    """
    answer: dict[str, list[str]] = {"recorded": [], "going_on": []}
    execution, workload = Fields(detail, "detail").text("executionArn"), _workload_of(detail)
    if workload is None:
        return answer  # a team's job: its event can be sent again
    past = history(services.ledger.entries(workload))
    begun = past.run_of_execution(execution)
    if begun is None:  # a duplicate, or nothing to train
        return answer
    recorded = {run.job for run in past.runs if run.run == begun.run}
    waits = past.waits_of(begun.run)
    begun_alike = services.jobs.statuses(naming.trial_job_prefix(workload, begun.run))
    jobs = naming.own_jobs(workload, begun.run, begun_alike)
    unrecorded = sorted(set(jobs) - recorded - {wait.job for wait in waits})
    if not unrecorded and not recorded:
        unrecorded = [naming.job_base(workload, begun.run, naming.attempt(0))]
    for job in unrecorded:
        attempt = attempt_of(attempt_number(job), waits)
        event = {"workload": workload, "run": begun.run, "job": job, "attempt": attempt.to_dict()}
        answer[_record_unattended(event, past, detail, services)].append(job)
    return answer


def _workload_of(detail: Mapping[str, Any]) -> str | None:
    """The workload that an execution's input names; whoever starts one by hand may write any."""
    try:
        given = json.loads(detail.get("input") or "{}")
    except BROKEN:
        return None
    workload = given.get("workload") if isinstance(given, Mapping) else None
    return workload if isinstance(workload, str) else None


def _record_unattended(
    event: Mapping[str, Any], past: WorkloadHistory, detail: Mapping[str, Any], services: Services
) -> str:
    """Record the job of ``event`` as the machine would have; returns the key of the answer."""
    job = str(event["job"])
    described = describe(job, services.jobs)
    if described and described["TrainingJobStatus"] not in ENDED:
        if detail.get("status") == EXECUTION_FAILED:
            return "going_on"
        # Stopped before it is read: the run is recorded with the status that SageMaker then gives.
        services.jobs.stop(job)
    why = explain(str(detail.get("error") or detail.get("status")), str(detail.get("cause") or ""))
    gave_up = None if described else f"the execution ended: {why}"
    ended, spec = _read(event, past, services)
    _write(attempt_run(ended, gave_up=gave_up), spec, services)
    return "recorded"


def _read(
    event: Mapping[str, Any], past: WorkloadHistory, services: Services
) -> tuple[EndedAttempt, Spec]:
    """The attempt that ``event`` is about, and the spec that its run began with.

    ``past`` holds at least what the ledger says of the run. Raises NotFoundError for a run that
    was never begun.
    """
    workload, run, job = str(event["workload"]), str(event["run"]), str(event["job"])
    begun = past.begun_run(run)
    if begun is None:
        lost = "; ".join(record.problem for record in past.damaged)
        raise NotFoundError(f"production run {run} of {workload} was never begun. {lost}".strip())
    spec, attempt = spec_at(services.store, begun.spec_key), Attempt.from_dict(event["attempt"])
    described = describe(job, services.jobs)
    error, cause = str(event.get("error") or ""), str(event.get("cause") or "")
    end, first = job_end(described, error, cause), event.get("wait_seconds")
    ended = EndedAttempt(
        workload=spec.workload,
        begun=begun,
        attempt=attempt,
        job=job,
        end=end,
        described=described,
        now=services.clock.now(),
        waits=tuple(wait for wait in past.waits_of(run) if wait.attempt < attempt.number),
        usd_per_hour=usd_per_hour(begun, attempt, spec, services.settings),
        # Of the execution's input, which a person may have written.
        first_wait_seconds=first if isinstance(first, int | float) else FIRST_SECONDS,
        error=error,
        cause=cause,
    )
    if end.ending is Ending.NO_CAPACITY:
        fallbacks = _fallbacks(begun, attempt, spec, JobSite.of(services))
        return replace(ended, fallbacks=fallbacks), spec
    if end.ending is Ending.COMPLETED:
        metric = spec.workload.quality.metric
        evidence = job_evidence(ended.described, metric, services.store)
        return replace(ended, evidence=evidence), spec
    return ended, spec


def _fallbacks(begun: BegunRun, attempt: Attempt, spec: Spec, site: JobSite) -> tuple[str, ...]:
    """The types that the team allows and that its job can run on."""
    usable = []
    for instance_type in spec.workload.training.fallback_instances:
        following = Attempt(number=attempt.number + 1, instance_type=instance_type)
        try:
            request_of(begun, following, spec, site)
        except InvalidInputError as error:
            logger.warning("%s: no fallback to %s: %s", spec.workload.name, instance_type, error)
        else:
            usable.append(instance_type)
    return tuple(usable)


def _twins(ended: EndedAttempt, jobs: TrainingJobs) -> tuple[str, ...]:
    """Other jobs of the run that are in progress.

    Only a retried job can have any. SageMaker allows an account two lists of jobs a second, so
    jobs are not listed for a first try.
    """
    if ended.job.endswith(naming.FIRST_TRY):
        return ()
    name = (ended.workload.name, ended.begun.run)
    active = naming.own_jobs(*name, jobs.active(naming.trial_job_prefix(*name)))
    return tuple(job for job in active if job != ended.job)


def _write(run: ProductionRun, spec: Spec, services: Services) -> ProductionRun:
    """The run as the ledger has it.

    A trial that waits for canary runs is woken afterwards, so that it reads the run.
    """
    workload = spec.workload.name
    entry = services.ledger.put_once(workload, run.key, run.to_entry())
    recorded = ProductionRun.from_entry(entry)
    close_after_run(workload, recorded, job=spec.job.digest, services=services)
    return recorded


def _recorded(run: ProductionRun, ended: EndedAttempt, stage: str) -> dict[str, Any]:
    """The answer for an attempt that was recorded."""
    step, owner, message = what_next(run), ended.workload.owner, None
    following = next_attempt(ended.attempt, run)
    if step == FAILED:
        message = run_failed(run, ended.workload.name, owner=owner, stage=stage).to_answer()
    return {**run_answer(step, run, owner), "attempt": following.to_dict(), "tell": message}


def _waiting(wait: CapacityWait, ended: EndedAttempt, stage: str) -> dict[str, Any]:
    """The answer for an attempt that got no capacity."""
    owner, message = ended.workload.owner, None
    if is_first_pause(wait, ended.waits):
        message = run_waits(wait, ended.workload.name, owner=owner, stage=stage).to_answer()
    return {
        "next": WAIT,
        "run": wait.run,
        "arm": ended.arm,
        "status": "Waiting",
        "reason": str(wait.reason),
        "counts": False,
        "attempt": next_attempt(ended.attempt, wait).to_dict(),
        "wait_seconds": int(wait.wait_seconds),
        "owner": owner,
        "tell": message,
    }
