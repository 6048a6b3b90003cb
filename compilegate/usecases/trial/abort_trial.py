"""Cleans up after a trial that failed, timed out or was stopped. Safe to repeat.

Called by the state machine's own Catch and by the event that Step Functions sends when an
execution ends badly: a stopped execution, or an error that no Catch can see, runs no state.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain.failures import IN_PROGRESS, explain
from compilegate.domain.production.canary import ABORTED
from compilegate.domain.production.orphans import ExecutionEnd, lacks_clean_up
from compilegate.domain.records.trials import TrialFailed, TrialStarted
from compilegate.ports import Services
from compilegate.usecases.canary import close_canary, tag_models
from compilegate.usecases.flag.approval import abandon_approval
from compilegate.usecases.records import Trial, find_plan
from compilegate.usecases.started_jobs import Described, jobs_of_trial, recorded_jobs

logger = logging.getLogger("compilegate")


def abort_trial(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Stop jobs, record what happened, release the lock; the flag stays as it was."""
    call = dict(event)
    if "detail" in event:  # Step Functions' own
        detail = event["detail"]
        call = json.loads(detail["input"]) | {
            "execution": detail["executionArn"],
            "error": detail.get("error") or detail["status"],
            "cause": detail.get("cause") or "",
        }
    trial, execution = Trial.from_event(call), str(call["execution"])
    error, cause = str(call.get("error", "")), str(call.get("cause", ""))
    # One that was refused the lock never wrote its start and has nothing to clean up, nor has one
    # that was started again with the same input.
    started = TrialStarted(services.clock.now(), execution, trial=trial.trial)
    if services.ledger.put_once(trial.workload, started).execution != execution:
        services.locks.release(trial.workload, execution)
        return {"error": error or "TrialFailed", "reason": explain(error, cause)}
    _end_waits(trial, services)
    jobs, spent_usd = _jobs_and_price(trial, services)
    stopped = [job for job, one in jobs.items() if one["TrainingJobStatus"] == IN_PROGRESS]
    for job in stopped:
        services.jobs.stop(job)
    try:
        tag_models(trial, None, services)
    except Exception:  # must not keep the lock
        logger.exception("models of %s stay held back", trial.trial)
    record = TrialFailed(
        at=services.clock.now(),
        trial=trial.trial,
        execution=execution,
        error=error,
        reason=explain(error, cause),
        stopped_jobs=tuple(stopped),
        jobs=tuple(sorted(jobs)),
        spent_usd=spent_usd,
    )
    written = services.ledger.put_once(trial.workload, record)
    services.locks.release(trial.workload, execution)
    # Again: a step that outlived its execution may have begun to wait. From here on it would see
    # that the lock is gone.
    _end_waits(trial, services)
    return {"error": written.error or "TrialFailed", "reason": written.reason}


def _jobs_and_price(trial: Trial, services: Services) -> tuple[Described, float | None]:
    """The trial's jobs, described, and what they cost; None where no record says their prices."""
    # Few trials are cleaned up after, and the step that takes the lock is the first of each.
    from compilegate.domain.trial.jobs import spent_on  # noqa: PLC0415

    records = recorded_jobs(trial, services)
    jobs, plan = jobs_of_trial(trial, records, services), find_plan(services.store, trial)
    if records is None or plan is None:
        return jobs, None if jobs or records is None else 0.0
    now = services.clock.now()
    return jobs, spent_on(jobs, records, plan.arms, of=(trial.workload, trial.trial), now=now)


def clean_up_after(execution: str, end: ExecutionEnd, *, services: Services) -> None:
    """What the event of a trial's bad end would have done; a failure of it is only logged.

    The caller then stops what is left, or releases it.
    """
    if not lacks_clean_up(execution, end, services.settings.stage):
        return
    try:
        abort_trial({"detail": end.detail}, services=services)
    except Exception:
        logger.exception("the clean-up of %s failed again", execution)


def _end_waits(trial: Trial, services: Services) -> None:
    """Let nobody go on serving the trial: no production run, no person."""
    close_canary(trial, ABORTED, services=services)
    abandon_approval(trial, services=services)
