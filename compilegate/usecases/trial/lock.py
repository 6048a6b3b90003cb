"""Takes and gives back the workload's lock, so that a workload is evaluated once at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import errors, ledger_keys
from compilegate.domain.planning.rounds import LOCK_SECONDS
from compilegate.domain.production.orphans import FORGOTTEN, GRACE_SECONDS, NOT_ENDED, ExecutionEnd
from compilegate.domain.records.trials import TrialFailed, TrialStarted
from compilegate.ports import Services
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.flag.change_flag import latest_flag
from compilegate.usecases.records import Trial
from compilegate.usecases.trial.abort_trial import clean_up_after

logger = logging.getLogger("compilegate")


def acquire_lock(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Take the lock; raises WorkloadLockedError naming the execution that holds it.

    It does so while the deployment is drained as well, and where the execution has been stopped
    or the trial had already begun. A lock whose execution has ended is taken over.
    """
    trial, execution = Trial.from_event(event), str(event["execution"])
    try:
        refuse_if_drained(services)
    except errors.DrainedError as error:
        # By this name the state machine knows that the trial owns nothing to clean up.
        raise errors.WorkloadLockedError(error.problem, fix=error.fix) from error
    now = services.clock.now()
    expires_at = now + LOCK_SECONDS
    try:
        services.locks.acquire(trial.workload, execution, now=now, expires_at=expires_at)
    except errors.WorkloadLockedError:
        owner = services.locks.holder(trial.workload)
        if owner is not None:
            _release_if_ended(trial.workload, owner, services)
        services.locks.acquire(trial.workload, execution, now=now, expires_at=expires_at)
    # The trial knows of every flag change up to this version, independent of clocks.
    _, seen = latest_flag(trial.workload, services)
    started = TrialStarted(services.clock.now(), execution, flag_version=seen, trial=trial.trial)
    written = services.ledger.put_once(trial.workload, started)
    try:
        _refuse_if_lost(execution, written, trial, services)
    except errors.WorkloadLockedError:  # given back: nothing else would
        services.locks.release(trial.workload, execution)
        raise
    return {}


def release_lock(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Release the lock if this execution still holds it; harmless to repeat."""
    services.locks.release(Trial.from_event(event).workload, str(event["execution"]))
    return {}


def _release_if_ended(workload: str, owner: str, services: Services) -> None:
    """Clean up after the lock's owner if it has ended; who cannot be asked about may still run.

    Step Functions forgets executions, and may not know of one that just began, as DescribeExecution
    is eventually consistent:
    https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html
    """
    end = _end_of(owner, services)
    if end == NOT_ENDED:
        return
    if end == FORGOTTEN:
        history = services.ledger.history(workload, ledger_keys.TRIAL_ENTRIES)
        since = services.clock.now() - GRACE_SECONDS
        if not any(one.execution == owner and one.at < since for one in history.started):
            return
    clean_up_after(owner, end, services=services)
    services.locks.release(workload, owner)


def _refuse_if_lost(
    execution: str, started: TrialStarted, trial: Trial, services: Services
) -> None:
    """Raises WorkloadLockedError where this execution may not go on.

    The clean-up after an execution that was stopped at once may be over before this step took the
    lock; where it failed the ledger says nothing. A trial runs once: its documents and jobs are
    named after it.
    """
    if started.execution != execution:
        problem = f"trial {trial.trial} of {trial.workload} was begun by {started.execution}"
        raise errors.WorkloadLockedError(problem, fix=errors.RESTART)
    is_aborted = services.ledger.history(trial.workload, TrialFailed.key_of(trial=trial.trial))
    if not is_aborted.records and _end_of(execution, services) in (NOT_ENDED, FORGOTTEN):
        return
    raise errors.lock_lost(trial.workload, execution)


def _end_of(execution: str, services: Services) -> ExecutionEnd:
    """How it ended; one that cannot be asked about may still run."""
    try:
        return services.ends.end_of(execution)
    except Exception:
        logger.exception("whether %s still runs cannot be read", execution)
        return NOT_ENDED
