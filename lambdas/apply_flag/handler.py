"""Flips the workload's flag as the decision says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.apply_flag import apply_flag
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("apply_flag", event):
        return apply_flag(event, services=wiring.services())
