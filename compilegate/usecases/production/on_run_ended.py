"""Records the end of a production run, from one of three events: the function RecordRun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.ports import Services
from compilegate.usecases.production.record_ended_execution import record_ended_execution
from compilegate.usecases.production.record_run import record_run
from compilegate.usecases.production.record_team_run import record_team_run


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
