"""Records how an attempt at a production run ended, and says what comes next.

The ledger's entry is written once: a repeated or late call reads it and answers the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.production.attempts import AttemptEnd
from compilegate.domain.production.recorded_run import (
    AttemptOutcome,
    EndedAttempt,
    attempt_answer,
    attempt_outcome,
    notifies_owner,
)
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from compilegate.ports import Services, TrainingJobs
from compilegate.report.notifications.production import attempt_message
from compilegate.usecases.canary import close_after_run
from compilegate.usecases.production.build_request import run_jobs
from compilegate.usecases.records import spec_at

logger = logging.getLogger("compilegate")


def record_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the attempt's run or its wait; ``next`` is watch, rerun, wait, failed or end.

    ``event`` is the machine's: workload, run, attempt, job, ``error`` and ``cause`` where its task
    failed, ``wait_seconds`` where its input says how long to wait. Raises StillTrainsError for a
    job that has not ended, NotFoundError for a run that was never begun.
    """
    end = AttemptEnd.from_event(event)
    past = services.ledger.history(end.workload, ledger_keys.run_entries(end.run))
    begun = past.begun_run(end.run)
    if begun is None:
        lost = "; ".join(record.problem for record in past.damaged)
        raise NotFoundError(
            f"production run {end.run} of {end.workload} was never begun. {lost}".strip()
        )
    ended = read_attempt(end, begun, past.waits_of(end.run), services)
    outcome = attempt_outcome(ended)
    return _write(outcome, ended, services)


def read_attempt(
    end: AttemptEnd, begun: BegunRun, waits: Iterable[CapacityWait], services: Services
) -> EndedAttempt:
    """Everything that recording the attempt reads beside the ledger's records of its run."""
    described, spec = services.jobs.describe(end.job), spec_at(services.store, begun.spec_key)
    return EndedAttempt(
        reported=end,
        begun=begun,
        waits=tuple(wait for wait in waits if wait.attempt < end.attempt.number),
        described=described,
        same_prefix=_active(end, services.jobs),
        jobs=run_jobs(spec.job, services),
        evidence=services.outputs.production_run(described, spec.workload.quality.metric),
        now=services.clock.now(),
    )


def append_record(
    record: ProductionRun | CapacityWait, ended: EndedAttempt, services: Services
) -> ProductionRun | CapacityWait:
    """The record as the ledger has it.

    A trial that waits for canary runs is woken afterwards, so that it reads the run.
    """
    workload, job = ended.workload.name, ended.jobs.trained.digest
    written = services.ledger.put_once(workload, record)
    if isinstance(written, ProductionRun):
        close_after_run(workload, written, job=job, services=services)
    return written


def _active(end: AttemptEnd, jobs: TrainingJobs) -> Sequence[str]:
    """Jobs in progress whose names begin like those of the run.

    Only a retried job can have any beside it. SageMaker allows an account two lists of jobs a
    second, so jobs are not listed for a first try.
    """
    if end.job.endswith(naming.FIRST_TRY):
        return ()
    return jobs.active(naming.trial_job_prefix(end.workload, end.run))


def _write(outcome: AttemptOutcome, ended: EndedAttempt, services: Services) -> dict[str, Any]:
    """Stop what the outcome stops, record it, and answer the machine by what the ledger has."""
    for instance_type, refused in outcome.fallbacks.items():
        if refused is not None:
            logger.warning("%s: no fallback to %s: %s", ended.workload.name, instance_type, refused)
    for stopped in outcome.stop:
        services.jobs.stop(stopped)
    written = append_record(outcome.record, ended, services)
    answer = attempt_answer(written, ended)
    if notifies_owner(written, ended):
        message = attempt_message(written, ended.workload, stage=services.settings.stage)
        answer = replace(answer, tell=message.to_answer())
    return answer.to_dict()
