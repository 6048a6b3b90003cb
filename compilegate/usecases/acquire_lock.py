"""Takes the workload's lease, so that a workload is evaluated once at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.errors import DrainedError, WorkloadLockedError
from compilegate.domain.planning.rounds import LEASE_SECONDS
from compilegate.ports import Services
from compilegate.usecases.change_flag import latest_flag
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.trial import Trial


def acquire_lock(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Take the lease; raises WorkloadLockedError naming the execution that holds it.

    So it does while the deployment is drained.

    The sweep of a dead execution releases it; its end is for when even that never happens.
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
    # What people have said by now this trial knows of, whatever their clocks show.
    _, seen = latest_flag(trial.workload, services)
    entry = {"kind": "started", "execution": event["execution"], "at": now, "flag_version": seen}
    services.ledger.put_once(trial.workload, ledger_keys.started_entry(trial.trial), entry)
    return {}
