"""Records an attempt of the TRAIN machine at a production run, and says what comes next."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import CompilegateError, InvalidInputError, NotFoundError
from compilegate.domain.failures import explain
from compilegate.domain.production.attempt import Attempt
from compilegate.domain.production.ending import Ending, job_end
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.production.recorded_run import (
    FAILED,
    RERUN,
    WAIT,
    EndedAttempt,
    attempt_run,
    capacity_wait,
    what_next,
)
from compilegate.domain.production.trained_job import TrainedJob
from compilegate.domain.production.waiting import FIRST_SECONDS, most_wait_seconds
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from compilegate.ports import Services
from compilegate.report.notifications.runs import run_failed, run_waits
from compilegate.usecases.production.close_canary import close_after_run
from compilegate.usecases.production.job_evidence import describe, job_evidence
from compilegate.usecases.production.job_request import JobSite, request_of, usd_per_hour
from compilegate.usecases.trial.documents import Spec, spec_at

IN_PROGRESS, TIMEOUT = "InProgress", "States.Timeout"
logger = logging.getLogger("compilegate")


class StillTrainsError(CompilegateError):
    """A job that goes on although nobody could wait for it any more: its end is not known yet."""


def record_attempt(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Read the attempt, record its run or its wait, and answer the machine.

    Raises StillTrainsError for a job that has not ended.
    """
    workload, run = str(event["workload"]), str(event["run"])
    past = history(services.ledger.entries(workload, ledger_keys.run_entries(run)))
    ended, spec = read_attempt(event, past, services)
    _stop_overdue(ended, event, services)
    _stop_strays(ended, services)
    gave_up = None
    if ended.end.ending is Ending.NO_CAPACITY:
        first = event.get("wait_seconds")
        wait = capacity_wait(
            ended,
            most_wait_seconds(spec.workload),
            first_seconds=FIRST_SECONDS if first is None else float(first),
        )
        if wait is not None:
            entry = services.ledger.put_once(workload, wait.key, wait.to_entry())
            return _waiting(CapacityWait.from_entry(entry), ended, services)
        gave_up = f"gave up waiting for machines: {ended.end.reason}"
    return _recorded(write_run(ended, spec, services, gave_up=gave_up), ended, services)


def read_attempt(
    event: Mapping[str, Any], past: WorkloadHistory, services: Services
) -> tuple[EndedAttempt, Spec]:
    """The attempt that ``event`` is about, and the spec that its run began with.

    ``past`` holds at least what the ledger says of the run. Raises NotFoundError for a run that
    was never begun.
    """
    workload, run, job = str(event["workload"]), str(event["run"]), str(event["job"])
    begun = past.begun_run(run)
    if begun is None:
        raise NotFoundError(f"production run {run} of {workload} was never begun")
    spec, attempt = spec_at(services.store, begun.spec_key), Attempt.from_dict(event["attempt"])
    described = describe(job, services.jobs)
    end = job_end(described, str(event.get("error") or ""), str(event.get("cause") or ""))
    ended = EndedAttempt(
        workload=spec.workload,
        begun=begun,
        attempt=attempt,
        job=job,
        end=end,
        described=described or {},
        now=services.clock.now(),
        waits=tuple(wait for wait in past.waits_of(run) if wait.attempt < attempt.number),
        usd_per_hour=usd_per_hour(begun, attempt, spec, services.settings),
    )
    if end.ending is Ending.NO_CAPACITY:
        return replace(ended, fallbacks=_fallbacks(begun, attempt, spec, services)), spec
    if end.ending is Ending.COMPLETED:
        metric = spec.workload.quality.metric
        evidence = job_evidence(ended.described, metric, services.store)
        return replace(ended, evidence=evidence), spec
    return ended, spec


def _fallbacks(
    begun: BegunRun, attempt: Attempt, spec: Spec, services: Services
) -> tuple[str, ...]:
    """The types that the team allows and that its job can run on."""
    site, usable = JobSite(services.store.bucket, services.settings), []
    for instance_type in spec.workload.training.fallback_instances:
        following = Attempt(number=attempt.number + 1, instance_type=instance_type)
        try:
            request_of(begun, following, spec, site)
        except InvalidInputError as error:
            name = spec.workload.name
            logger.warning("%s: no fallback to %s: %s", name, instance_type, error)
        else:
            usable.append(instance_type)
    return tuple(usable)


def _stop_overdue(ended: EndedAttempt, event: Mapping[str, Any], services: Services) -> None:
    """Stop a job whose time is up; raises StillTrainsError for any other that has not ended.

    What is recorded is recorded once, so that its true end could not be recorded any more.
    """
    if ended.described.get("TrainingJobStatus") != IN_PROGRESS:
        return
    error, cause = str(event.get("error") or ""), str(event.get("cause") or "")
    if error != TIMEOUT:
        raise StillTrainsError(
            f"{ended.job} still trains, and waiting for it failed: {explain(error, cause)}. It "
            "goes on, and leaves its model; its run is not recorded"
        )
    services.jobs.stop(ended.job)


def _stop_strays(ended: EndedAttempt, services: Services) -> None:
    """CreateTrainingJob may start a job and its answer be lost: the retry then starts another.

    Only a job that was asked for again can have such a twin, so that SageMaker's list, of which
    an account may ask twice a second, is asked for hardly ever.
    """
    if ended.job.endswith(naming.FIRST_TRY):
        return
    prefix = naming.trial_job_prefix(ended.workload.name, ended.begun.run)
    for job in services.jobs.active(prefix):
        if job != ended.job:
            services.jobs.stop(job)


def write_run(
    ended: EndedAttempt, spec: Spec, services: Services, *, gave_up: str | None = None
) -> ProductionRun:
    """The run as the ledger has it; ``gave_up`` says why it was not run at all.

    A trial that waits for canary runs is woken after that, so that it finds the run.
    """
    workload, run = spec.workload.name, attempt_run(ended, gave_up=gave_up)
    entry = services.ledger.put_once(workload, run.key, run.to_entry())
    recorded = ProductionRun.from_entry(entry)
    digest = TrainedJob(spec.workload, spec.code).digest
    close_after_run(workload, recorded, job=digest, services=services)
    return recorded


def _recorded(run: ProductionRun, ended: EndedAttempt, services: Services) -> dict[str, Any]:
    """The answer for an attempt that was recorded."""
    step, owner = what_next(run), ended.workload.owner
    following = Attempt(ended.attempt.number + 1, rerun=True) if step == RERUN else ended.attempt
    message = None
    if step == FAILED:
        stage = services.settings.stage
        message = run_failed(run, ended.workload.name, owner=owner, stage=stage).to_answer()
    return {
        "next": step,
        "run": run.run,
        "arm": run.arm,
        "status": run.status,
        "reason": run.reason,
        "counts": run.counts,
        "attempt": following.to_dict(),
        "wait_seconds": 0,
        "owner": owner,
        "tell": message,
    }


def _waiting(wait: CapacityWait, ended: EndedAttempt, services: Services) -> dict[str, Any]:
    """The answer for an attempt that found no capacity."""
    seconds, owner = int(wait.wait_seconds), ended.workload.owner
    following = Attempt(
        number=ended.attempt.number + 1,
        rerun=ended.attempt.rerun,
        instance_type=wait.next_instance_type,
    )
    message = None
    if seconds > 0 and not any(earlier.wait_seconds for earlier in ended.waits):
        stage = services.settings.stage
        message = run_waits(wait, ended.workload.name, owner=owner, stage=stage).to_answer()
    return {
        "next": WAIT,
        "run": wait.run,
        "arm": ended.arm,
        "status": "Waiting",
        "reason": str(wait.reason),
        "counts": False,
        "attempt": following.to_dict(),
        "wait_seconds": seconds,
        "owner": owner,
        "tell": message,
    }
