"""Records how an attempt at a production run ended, and says what comes next.

The ledger's entry is written once: repeating the call, or a late one, finds it and answers the
same.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError
from compilegate.domain.failures import explain
from compilegate.domain.production.ending import Ending
from compilegate.ports import Services
from compilegate.usecases.production.answers import (
    END,
    WATCH,
    answer,
    answer_waiting,
    answer_without,
)
from compilegate.usecases.production.ended import Ended, ended_attempt
from compilegate.usecases.production.ended_badly import settle_ended
from compilegate.usecases.production.flag_reading import repair_if_possible
from compilegate.usecases.production.production_job import load_registered
from compilegate.usecases.production.recording import record_attempt
from compilegate.usecases.production.team_run import NotOursError, record_team_run
from compilegate.usecases.production.wait_for_capacity import wait_for_capacity

IN_PROGRESS, TIMEOUT = "InProgress", "States.Timeout"
logger = logging.getLogger("compilegate")


def record_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """``next`` is ``watch``, ``rerun``, ``wait``, ``failed`` or ``end``.

    ``event`` is the machine's after an attempt (workload, run, attempt, job, ``error`` and
    ``cause`` where its task failed, ``wait_seconds`` where its input says how long to wait), that
    of a team's job (workload, job), or Step Functions' own of an execution that ended badly.
    Raises StillTrainsError for a job that has not ended.
    """
    if "detail" in event:
        return settle_ended(event["detail"], services=services)
    if "attempt" not in event:
        return _team(event, services)
    ended = ended_attempt(event, services)
    _settle_job(ended, event, services)
    _stop_strays(ended, services)
    if ended.end.ending is not Ending.NO_CAPACITY:
        return answer(record_attempt(ended, services), ended, services)
    given = event.get("wait_seconds")
    seconds = float(given) if given is not None else None
    waiting = wait_for_capacity(ended, services, first_seconds=seconds)
    if waiting is not None:
        return answer_waiting(waiting, ended, services)
    gave_up = f"gave up waiting for machines: {ended.end.reason}"
    return answer(record_attempt(ended, services, gave_up=gave_up), ended, services)


class StillTrainsError(CompilegateError):
    """A job that goes on although nobody could wait for it any more: its end is not known yet."""


def _settle_job(ended: Ended, event: Mapping[str, Any], services: Services) -> None:
    """Stop a job whose time is up; raises StillTrainsError for any other that has not ended.

    What is written is written once, so that its true end could not be told any more.
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


def _team(event: Mapping[str, Any], services: Services) -> dict[str, Any]:
    workload, job = str(event["workload"]), str(event["job"])
    try:
        run = record_team_run(workload, job, services=services)
    except NotOursError as error:
        logger.warning("%s: not recorded: %s", job, error, extra={"workload": workload})
        return answer_without(END, None, str(error))
    # A team's pipeline reads the parameter itself: what its next run reads has to be right.
    repair_if_possible(workload, services)
    owner = load_registered(workload, services).spec.workload.owner
    return answer_without(WATCH if run.counts else END, run, None, owner)


def _stop_strays(ended: Ended, services: Services) -> None:
    """CreateTrainingJob may start a job and its answer be lost: the retry then starts another.

    Only a job that was asked for again can have such a twin, so that SageMaker's list, of which
    an account may ask twice a second, is asked for hardly ever.
    """
    if ended.job.endswith(naming.FIRST_TRY):
        return
    for job in services.jobs.active(naming.trial_job_prefix(ended.workload, ended.begun.run)):
        if job != ended.job:
            services.jobs.stop(job)
