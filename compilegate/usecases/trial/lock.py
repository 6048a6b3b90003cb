"""Takes and gives back the workload's lease, so that a workload is evaluated once at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.errors import DrainedError, WorkloadLockedError
from compilegate.domain.planning.rounds import LEASE_SECONDS
from compilegate.domain.records.trials import TrialStarted
from compilegate.ports import Services
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.flag.change_flag import latest_flag
from compilegate.usecases.records import Trial


def acquire_lock(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Take the lease; raises WorkloadLockedError naming the execution that holds it.

    It does so while the deployment is drained as well. The sweep of a dead execution releases the
    lease; its expiry is for when even that never happens.
    """
    trial = Trial.from_event(event)
    try:
        refuse_if_drained(services)
    except DrainedError as error:
        # By this name the state machine knows that the trial owns nothing to clean up.
        raise WorkloadLockedError(str(error)) from error
    now = services.clock.now()
    services.locks.acquire(
        trial.workload, str(event["execution"]), now=now, expires_at=now + LEASE_SECONDS
    )
    # The trial knows of every flag change up to this version, independent of clocks.
    _, seen = latest_flag(trial.workload, services.ledger)
    started = TrialStarted(now, str(event["execution"]), flag_version=seen)
    key = ledger_keys.started_entry(trial.trial)
    services.ledger.put_once(trial.workload, key, started.to_entry())
    return {}


def release_lock(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Release the lease if this execution still holds it; harmless to repeat."""
    services.locks.release(Trial.from_event(event).workload, str(event["execution"]))
    return {}
