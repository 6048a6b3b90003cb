"""Takes the workload's lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.acquire_lock import acquire_lock
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("acquire_lock", event):
        return acquire_lock(event, services=wiring.services())
