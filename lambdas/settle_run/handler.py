"""Settles one run that has ended: its outcome, and what of the round can no longer matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.settle_run import settle_run
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("settle_run", event):
        return settle_run(event, services=wiring.services())
