"""Says why a training job failed and stops the trial's others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.settle_failed_run import settle_failed_run
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("settle_failed_run", event):
        return settle_failed_run(event, services=wiring.services())
