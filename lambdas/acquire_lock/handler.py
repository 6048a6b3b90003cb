"""Takes the workload's lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.naming import REFUSED
from compilegate.usecases.acquire_lock import acquire_lock
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine.

    A refusal is an answer: as an error it would count as one of the function's and raise an alarm.
    """
    try:
        with logged("acquire_lock", event):
            return acquire_lock(event, services=wiring.services())
    except WorkloadLockedError as error:
        return {REFUSED: {"error": type(error).__name__, "cause": str(error)}}
