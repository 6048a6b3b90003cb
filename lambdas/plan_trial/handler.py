"""Fixes arms, rounds and cost, or refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.plan_trial import plan_trial
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("plan_trial", event):
        return plan_trial(event, services=wiring.services())
