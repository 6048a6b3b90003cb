"""Takes and gives back the workload's lease, so that a workload is evaluated once at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.errors import (
    RESTART,
    DrainedError,
    WorkloadLockedError,
    lease_lost,
)
from compilegate.domain.planning.rounds import LEASE_SECONDS
from compilegate.domain.production.orphans import GRACE_SECONDS
from compilegate.domain.records.trials import TrialFailed, TrialStarted
from compilegate.ports import Services
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.flag.change_flag import latest_flag
from compilegate.usecases.records import Trial
from compilegate.usecases.trial.abort_trial import clean_up_after

logger = logging.getLogger("compilegate")


def acquire_lock(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Take the lease; raises WorkloadLockedError naming the execution that holds it.

    It does so while the deployment is drained as well, and where the execution has been stopped
    or the trial had already begun. A lease whose execution has ended is taken over.
    """
    trial, execution = Trial.from_event(event), str(event["execution"])
    try:
        refuse_if_drained(services)
    except DrainedError as error:
        # By this name the state machine knows that the trial owns nothing to clean up.
        raise WorkloadLockedError(error.problem, fix=error.fix) from error
    _take(trial.workload, execution, services)
    # The trial knows of every flag change up to this version, independent of clocks.
    _, seen = latest_flag(trial.workload, services)
    started = TrialStarted(services.clock.now(), execution, flag_version=seen, trial=trial.trial)
    key = TrialStarted.key_of(trial=trial.trial)
    written = services.ledger.put_once(trial.workload, started, key=key)
    _check_own(written, trial, execution, services)
    return {}


def release_lock(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Release the lease if this execution still holds it; harmless to repeat."""
    services.locks.release(Trial.from_event(event).workload, str(event["execution"]))
    return {}


def _take(workload: str, execution: str, services: Services) -> None:
    """Take the lease, also from an execution that has ended."""
    now = services.clock.now()
    expires_at = now + LEASE_SECONDS
    try:
        services.locks.acquire(workload, execution, now=now, expires_at=expires_at)
    except WorkloadLockedError:
        owner = services.locks.holder(workload)
        if owner is not None and not _release_if_ended(workload, owner, services):
            raise
        services.locks.acquire(workload, execution, now=now, expires_at=expires_at)


def _release_if_ended(workload: str, owner: str, services: Services) -> bool:
    """Clean up after the lease's owner if it has ended; who cannot be asked about may still run."""
    try:
        end = services.ends.end_of(owner)
    except Exception:
        logger.exception("whether %s still runs cannot be read", owner)
        return False
    if end is None or (end.status is None and not _began_long_ago(workload, owner, services)):
        return False
    clean_up_after(owner, end, services=services)
    services.locks.release(workload, owner)
    return True


def _began_long_ago(workload: str, execution: str, services: Services) -> bool:
    """Whether Step Functions can have forgotten it: of one that just began it may not know yet.

    DescribeExecution is eventually consistent:
    https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html
    """
    past = services.ledger.history(workload, ledger_keys.TRIAL_ENTRIES)
    since = services.clock.now() - GRACE_SECONDS
    return any(one.execution == execution and one.at < since for one in past.started)


def _check_own(started: TrialStarted, trial: Trial, execution: str, services: Services) -> None:
    """Give the lease back where this execution may not go on: then nothing else would.

    The clean-up after an execution that was stopped at once may be over before this step took the
    lease. A trial runs once: its documents and jobs are named after it.
    """
    if started.execution != execution:
        problem = f"trial {trial.trial} of {trial.workload} was begun by {started.execution}"
        error = WorkloadLockedError(problem, fix=RESTART)
    elif _is_aborted(trial, services) or _has_ended(execution, services):
        error = lease_lost(trial.workload, execution)
    else:
        return
    services.locks.release(trial.workload, execution)
    raise error


def _is_aborted(trial: Trial, services: Services) -> bool:
    key = TrialFailed(0, trial.trial).key
    return bool(services.ledger.history(trial.workload, key).records)


def _has_ended(execution: str, services: Services) -> bool:
    """Whether it is known to have, where its clean-up failed and the ledger says nothing."""
    try:
        end = services.ends.end_of(execution)
    except Exception:
        logger.exception("whether %s still runs cannot be read", execution)
        return False
    return end is not None and end.status is not None
