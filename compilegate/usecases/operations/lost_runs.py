"""Records production runs whose execution has ended without its record: the event of it was lost,
or its job went on alone and has ended since.
"""

from __future__ import annotations

from compilegate.domain import ledger_keys
from compilegate.domain.production.orphans import ENDED_BADLY
from compilegate.domain.records.runs import BegunRun
from compilegate.ports import Services
from compilegate.usecases.production.record_ended_execution import record_ended_execution
from compilegate.usecases.registered import for_each_workload, try_each

# As long as the queue of dead letters keeps the event (stacks/stack.py).
LOOK_BACK_SECONDS = 14 * 24 * 3600


def record_lost_runs(services: Services, *, grace_seconds: float) -> int:
    """Record them as the event would have; returns how many executions were made up for.

    An execution that ended less than ``grace_seconds`` ago is left to its event. Raises the last
    failure once all were tried.
    """
    by_workload = for_each_workload(lambda name: _unended(name, services), services.store)
    lost = (
        (f"{workload}: run {begun.run} was not recorded", begun)
        for workload, unended in by_workload
        for begun in unended
    )
    return try_each(lost, lambda begun: _record(begun, services, grace_seconds))


def _unended(workload: str, services: Services) -> tuple[str, list[BegunRun]]:
    past = services.ledger.history(workload, ledger_keys.RUN_ENTRIES)
    since = services.clock.now() - LOOK_BACK_SECONDS
    return workload, [
        one for one in past.begun if one.run not in past.ended_runs and one.at > since
    ]


def _record(begun: BegunRun, services: Services, grace_seconds: float) -> bool:
    end = services.ends.end_of(begun.execution)
    if end is None or end.status not in ENDED_BADLY or end.at is None:
        return False
    if services.clock.now() - end.at < grace_seconds:
        return False
    return bool(record_ended_execution({"detail": end.detail}, services=services)["recorded"])
