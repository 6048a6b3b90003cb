"""Releases a workload's lease by hand, once nothing runs that holds it."""

from __future__ import annotations

from compilegate.domain.flag_override import Override
from compilegate.domain.production.orphans import ExecutionEnd
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.records.ledger import Unlocked
from compilegate.ports import Services
from compilegate.usecases.trial.abort_trial import clean_up_after


def unlock(
    workload: str,
    execution: str,
    end: ExecutionEnd,
    override: Override,
    *,
    stopped: bool,
    services: Services,
) -> Unlocked:
    """Record who releases the lease of ``execution``, clean up after it, release the lease.

    ``stopped`` says that it ran until this person stopped it. Repeating an interrupted call is
    safe.
    """
    record = Unlocked(
        at=services.clock.now(),
        execution=execution,
        by=f"{HUMAN}{override.who}",
        reason=override.reason.strip(),
        status=end.status,
        stopped=stopped,
    )
    services.ledger.append(workload, record)
    clean_up_after(execution, end, services=services)
    services.locks.release(workload, execution)
    return record
