"""What a trial's spreads are learned from: production's latest runs, and what trials have shown."""

from __future__ import annotations

from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.savings import wall_seconds_of, work_of
from compilegate.domain.spreads import Spreads, learn
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services

# Older runs are of other data and other machines.
DAYS_READ = 180


def learned_spreads(workload: str, instance_type: str, *, services: Services) -> Spreads:
    """The spreads of a workload's trial on an instance type, as far as they can be learned."""
    since = services.clock.now() - DAYS_READ * DAY_SECONDS
    walls = baseline_walls(services.ledger.history(workload, since=since), instance_type)
    rows = services.fleet.rows().read
    measured = [(row.workload, one) for row in rows for one in row.spreads]
    return learn(workload, instance_type, walls, measured)


def baseline_walls(history: WorkloadHistory, instance_type: str) -> list[float]:
    """Seconds of the baseline's runs on the type, in the order of time, at the steps of the last.

    As they are where a run does not say how many steps it did.
    """
    timed = [
        (wall, work[0] if (work := work_of(run)) else 0.0)
        for run in history.runs
        if run.arm == BASELINE and run.counts and run.finished
        if run.instance_type == instance_type and (wall := wall_seconds_of(run))
    ]
    counted = all(steps for _, steps in timed)
    return [wall * (timed[-1][1] / steps) if counted else wall for wall, steps in timed]
