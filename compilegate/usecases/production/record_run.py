"""Records how a production job ended, and says what comes next.

The ledger's entry is written once: a repeated or late call reads it and answers the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.failures import ENDED
from compilegate.domain.fields import Fields
from compilegate.domain.production.attempts import AttemptEnd
from compilegate.domain.production.ended_execution import EndedExecution, unrecorded_attempts
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.production.recorded_run import (
    AttemptOutcome,
    EndedAttempt,
    attempt_answer,
    attempt_outcome,
    attempt_run,
    notifies_owner,
)
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from compilegate.ports import Services, TrainingJobs
from compilegate.report.notifications.production import attempt_message
from compilegate.usecases.canary import close_after_run
from compilegate.usecases.job_output import describe
from compilegate.usecases.production.build_request import run_jobs
from compilegate.usecases.production.job_evidence import job_evidence
from compilegate.usecases.production.record_team_run import record_team_run
from compilegate.usecases.records import put_once, spec_at

logger = logging.getLogger("compilegate")


def record_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """``next`` is ``watch``, ``rerun``, ``wait``, ``failed`` or ``end``.

    ``event`` is the machine's after an attempt (workload, run, attempt, job, ``error`` and
    ``cause`` where its task failed, ``wait_seconds`` where its input says how long to wait), that
    of a team's job (workload, job), or Step Functions' own of an execution that ended badly.
    """
    if "detail" in event:
        end = EndedExecution.from_event(event["detail"])
        return record_ended_execution(end, services=services)
    if "attempt" in event:
        return record_attempt(AttemptEnd.from_event(event), services=services)
    fields = Fields(event, "event")
    return record_team_run(fields.text("workload"), fields.text("job"), services=services)


def record_attempt(end: AttemptEnd, *, services: Services) -> dict[str, Any]:
    """Read the attempt, record its run or its wait, and answer the machine.

    Raises StillTrainsError for a job that has not ended, NotFoundError for a run that was never
    begun.
    """
    past = history(services.ledger.entries(end.workload, ledger_keys.run_entries(end.run)))
    begun = past.begun_run(end.run)
    if begun is None:
        lost = "; ".join(record.problem for record in past.damaged)
        raise NotFoundError(
            f"production run {end.run} of {end.workload} was never begun. {lost}".strip()
        )
    alike = _active(end, services.jobs)
    ended = _read(end, begun, past.waits_of(end.run), services, begun_alike=alike)
    record = _write(attempt_outcome(ended), ended, services)
    answer = attempt_answer(record, ended)
    if notifies_owner(record, ended):
        message = attempt_message(record, ended.workload, stage=services.settings.stage)
        answer = replace(answer, tell=message.to_answer())
    return answer.to_dict()


def record_ended_execution(end: EndedExecution, *, services: Services) -> dict[str, Any]:
    """Record the jobs of an execution that was stopped, ran out of time or failed. Safe to repeat.

    A job that trains continues after a failure of the machine, because its model is needed; where a
    person stopped the execution, or its time was up, the job is stopped. Returns which jobs were
    recorded, and which continue unattended.
    """
    answer: dict[str, list[str]] = {"recorded": [], "going_on": []}
    if end.workload is None:
        return answer  # a team's job: its event can be sent again
    past = history(services.ledger.entries(end.workload))
    begun = past.run_of_execution(end.execution)
    if begun is None:  # a duplicate, or nothing to train
        return answer
    begun_alike = services.jobs.statuses(naming.trial_job_prefix(end.workload, begun.run))
    for attempt in unrecorded_attempts(end.workload, begun, past, begun_alike):
        answer[_record_unattended(attempt, begun, past, end, services)].append(attempt.job)
    return answer


def _record_unattended(
    attempt: AttemptEnd,
    begun: BegunRun,
    past: WorkloadHistory,
    end: EndedExecution,
    services: Services,
) -> str:
    """Record the attempt as the machine would have; returns the key of the answer."""
    described = describe(attempt.job, services.jobs)
    if described and described["TrainingJobStatus"] not in ENDED:
        if end.leaves_jobs:
            return "going_on"
        # Stopped before it is read: the run is recorded with the status that SageMaker then gives.
        services.jobs.stop(attempt.job)
    gave_up = None if described else f"the execution ended: {end.why}"
    ended = _read(attempt, begun, past.waits_of(begun.run), services)
    _record(attempt_run(ended, gave_up=gave_up), ended, services)
    return "recorded"


def _read(
    end: AttemptEnd,
    begun: BegunRun,
    waits: Iterable[CapacityWait],
    services: Services,
    *,
    begun_alike: Sequence[str] = (),
) -> EndedAttempt:
    """Everything that recording the attempt reads; ``waits`` are the run's."""
    described, spec = describe(end.job, services.jobs), spec_at(services.store, begun.spec_key)
    return EndedAttempt(
        reported=end,
        begun=begun,
        jobs=run_jobs(spec.job, services),
        described=described,
        now=services.clock.now(),
        evidence=job_evidence(described, spec.workload.quality.metric, services.store),
        waits=tuple(wait for wait in waits if wait.attempt < end.attempt.number),
        begun_alike=begun_alike,
    )


def _active(end: AttemptEnd, jobs: TrainingJobs) -> Sequence[str]:
    """Jobs in progress whose names begin like those of the run.

    Only a retried job can have any beside it. SageMaker allows an account two lists of jobs a
    second, so jobs are not listed for a first try.
    """
    if end.job.endswith(naming.FIRST_TRY):
        return ()
    return jobs.active(naming.trial_job_prefix(end.workload, end.run))


def _write(
    outcome: AttemptOutcome, ended: EndedAttempt, services: Services
) -> ProductionRun | CapacityWait:
    for instance_type, refused in outcome.fallbacks.items():
        if refused is not None:
            logger.warning("%s: no fallback to %s: %s", ended.workload.name, instance_type, refused)
    for stopped in outcome.stop:
        services.jobs.stop(stopped)
    return _record(outcome.record, ended, services)


def _record(
    record: ProductionRun | CapacityWait, ended: EndedAttempt, services: Services
) -> ProductionRun | CapacityWait:
    """The record as the ledger has it.

    A trial that waits for canary runs is woken afterwards, so that it reads the run.
    """
    workload, job = ended.workload.name, ended.jobs.trained.digest
    written = put_once(services.ledger, workload, record)
    if isinstance(written, ProductionRun):
        close_after_run(workload, written, job=job, services=services)
    return written
