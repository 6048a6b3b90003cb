"""Records how a production run ended: an attempt, a team's job, an execution that ended badly.

The ledger's entry is written once: a repeated or late call reads it and answers the same.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.codec import write
from compilegate.domain.errors import CompilegateError, NotFoundError
from compilegate.domain.failures import ENDED, IN_PROGRESS
from compilegate.domain.fields import Fields
from compilegate.domain.production import ended_execution, recorded_run
from compilegate.domain.production.attempts import AttemptEnd, RunAnswer
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.orphans import FAILED
from compilegate.domain.production.recent import windows
from compilegate.domain.reasons import advice
from compilegate.domain.records.production import BegunRun, CapacityWait, ProductionRun
from compilegate.ports import Services
from compilegate.report.notifications.production import attempt_message
from compilegate.usecases.canary import close_after_run
from compilegate.usecases.flag.change_flag import flag_versions, repair_if_possible
from compilegate.usecases.production.begin_run import run_jobs
from compilegate.usecases.records import facts_for_workload, load_registered, spec_at
from compilegate.usecases.started_jobs import jobs_of_run

logger = logging.getLogger("compilegate")


def record_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the attempt's run or its wait; ``next`` is review, rerun, wait, failed or end.

    ``event`` is the machine's: workload, run, attempt, job, ``error`` and ``cause`` where its task
    failed, ``wait_seconds`` where its input says how long to wait. Raises StillTrainsError for a
    job that has not ended, NotFoundError for a run that was never begun.
    """
    end = AttemptEnd.from_event(event)
    history = services.ledger.history(end.workload, ledger_keys.run_entries(end.run))
    begun = history.begun_run(end.run)
    if begun is None:
        lost = "; ".join(record.problem for record in history.damaged)
        raise NotFoundError(
            f"production run {end.run} of {end.workload} was never begun. {lost}".strip()
        )
    ended = read_attempt(end, begun, history.waits_of(end.run), services)
    outcome = recorded_run.attempt_outcome(ended)
    for instance_type, refused in outcome.refused.items():
        logger.warning("%s: no fallback to %s: %s", end.workload, instance_type, refused)
    for stopped in outcome.stop:
        services.jobs.stop(stopped)
    written = append_record(outcome.record, ended, services)
    answer = recorded_run.attempt_answer(written, ended)
    if recorded_run.notifies_owner(answer, ended.waits):
        message = attempt_message(
            written, ended.workload.name, owner=ended.workload.owner, stage=services.settings.stage
        )
        answer = replace(answer, tell=message.to_answer())
    document: dict[str, Any] = write(answer)
    return document


def read_attempt(
    end: AttemptEnd, begun: BegunRun, waits: Iterable[CapacityWait], services: Services
) -> recorded_run.EndedAttempt:
    """Everything that recording the attempt reads beside the ledger's records of its run."""
    described, spec = services.jobs.describe(end.job), spec_at(services.store, begun.spec_key)
    earlier = services.jobs.describe_all(naming.earlier_tries(end.job))
    return recorded_run.EndedAttempt(
        reported=end,
        begun=begun,
        waits=tuple(wait for wait in waits if wait.attempt < end.attempt.number),
        described=described,
        duplicates=tuple(
            job for job, one in earlier.items() if one["TrainingJobStatus"] == IN_PROGRESS
        ),
        jobs=run_jobs(spec.job, services),
        evidence=services.outputs.production_run(described, spec.workload.quality),
        now=services.clock.now(),
    )


def append_record(
    record: ProductionRun | CapacityWait, ended: recorded_run.EndedAttempt, services: Services
) -> ProductionRun | CapacityWait:
    """The record as the ledger has it.

    A trial that waits for canary runs is woken afterwards, so that it reads the run.
    """
    workload, job = ended.workload.name, ended.jobs.trained.digest
    written = services.ledger.put_once(workload, record)
    if isinstance(written, ProductionRun):
        close_after_run(workload, written, job=job, services=services)
    return written


# Records a training job that a team's own pipeline has started.
#
# SageMaker's events may come twice and in any order, so only the job's name is taken from them: the
# job itself says which workload it trains and when it ran, and the ledger takes it once.


def record_team_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the job that ``event`` names (workload, job) once; ``next`` is ``review`` or ``end``.

    A job that is not a team's production run of this workload is not recorded as one; the ledger
    keeps that one of another role claimed to be.
    """
    fields = Fields(event, "event")
    workload, job = fields.text("workload"), fields.text("job")
    described = services.jobs.describe(job)
    if not described:
        return _ignored(workload, job, f"SageMaker knows no training job {job}")
    tags = services.jobs.tags(job)
    problem = ended_execution.refusal(workload, described, tags, stage=services.settings.stage)
    if problem:
        return _ignored(workload, job, problem)
    try:
        registered = load_registered(workload, services.store).workload
    except CompilegateError as error:
        return _ignored(workload, job, f"{workload} is not in production: {error}")
    now = services.clock.now()
    own = naming.job_role_arn(services.settings.job_roles, workload)
    foreign = ended_execution.job_of_another_role(described, own, registered, now=now)
    if foreign is not None:
        services.ledger.append(workload, foreign)
        fix = advice(foreign.code)
        return _ignored(workload, job, f"it ran as {foreign.role} ({foreign.code}). {fix}")
    evidence = services.outputs.production_run(described, registered.quality)
    versions = flag_versions(workload, services)
    run = ended_execution.team_run(
        described,
        tags,
        evidence,
        registered.training,
        versions,
        facts=facts_for_workload(registered, services.settings),
        now=now,
    )
    run = services.ledger.put_once(workload, run)
    close_after_run(workload, run, job=None, services=services)
    # A team's pipeline reads the parameter itself: what its next run reads has to be right.
    repair_if_possible(workload, services)
    answer: dict[str, Any] = write(
        recorded_run.run_answer(
            recorded_run.REVIEW if run.counts else recorded_run.END, run, registered.owner
        )
    )
    return answer


def _ignored(workload: str, job: str, problem: str) -> dict[str, Any]:
    logger.warning("%s: not recorded: %s", job, problem, extra={"workload": workload})
    answer: dict[str, Any] = write(RunAnswer(recorded_run.END, reason=problem))
    return answer


def record_ended_execution(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the jobs of an execution that was stopped, ran out of time or failed. Safe to repeat.

    ``event`` is Step Functions' own. A job that trains continues after a failure of the machine,
    because its model is needed; where a person stopped the execution, or its time was up, the job
    is stopped. Returns which jobs were recorded, and which continue unattended.
    """
    end = ended_execution.EndedExecution.from_event(event["detail"])
    answer: dict[str, list[str]] = {"recorded": [], "going_on": []}
    if end.workload is None:
        return answer  # a team's job: its event can be sent again
    # The last but one of the windows is longer than an execution may take, and be looked for after.
    history, times = WorkloadHistory(since=math.inf), windows(services.clock.now())[:-2]
    history = services.ledger.enough(
        end.workload, history, times, lambda one: one.run_of_execution(end.execution) is not None
    )
    begun = history.run_of_execution(end.execution)
    if begun is None:  # a duplicate, or nothing to train
        return answer
    jobs = jobs_of_run(end.workload, begun, history, services)
    for attempt in ended_execution.unrecorded_attempts(end.workload, begun, history, jobs):
        described = jobs.get(attempt.job)
        if described and described["TrainingJobStatus"] not in ENDED:
            if end.status == FAILED:
                answer["going_on"].append(attempt.job)
                continue
            # Stopped before it is read: the run is recorded with the status that SageMaker then
            # gives.
            services.jobs.stop(attempt.job)
        gave_up = "" if described else f"the execution ended: {end.why}"
        ended = read_attempt(attempt, begun, history.waits_of(begun.run), services)
        append_record(recorded_run.attempt_run(ended, gave_up=gave_up), ended, services)
        answer["recorded"].append(attempt.job)
    return answer


# Records the end of a production run, from one of three events: the function RecordRun.


def on_run_ended(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record it by the use case of its event.

    ``event`` is Step Functions' own of an execution that ended badly (it has ``detail``), the TRAIN
    machine's after an attempt (it has ``attempt``), or that of a team's job (workload, job).
    """
    if "detail" in event:
        return record_ended_execution(event, services=services)
    if "attempt" in event:
        return record_run(event, services=services)
    return record_team_run(event, services=services)
