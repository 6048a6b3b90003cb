"""Cleans up after a trial that failed, timed out or was stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.abort_trial import abort_trial
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("abort_trial", event):
        return abort_trial(event, services=wiring.services())
