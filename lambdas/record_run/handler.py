"""Records how an attempt at a production run ended, and says what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.production.record_run import record_run
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("record_run", event):
        return record_run(event, services=wiring.services())
