"""Records how a production job ended, and says what comes next.

The ledger's entry is written once: repeating the call, or a late one, finds it and answers the
same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.ports import Services
from compilegate.usecases.production.record_attempt import record_attempt
from compilegate.usecases.production.record_ended_execution import record_ended_execution
from compilegate.usecases.production.record_team_run import record_team_run


def record_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """``next`` is ``watch``, ``rerun``, ``wait``, ``failed`` or ``end``.

    ``event`` is the machine's after an attempt (workload, run, attempt, job, ``error`` and
    ``cause`` where its task failed, ``wait_seconds`` where its input says how long to wait), that
    of a team's job (workload, job), or Step Functions' own of an execution that ended badly.
    """
    if "detail" in event:
        return record_ended_execution(event["detail"], services=services)
    if "attempt" in event:
        return record_attempt(event, services=services)
    return record_team_run(event, services=services)
