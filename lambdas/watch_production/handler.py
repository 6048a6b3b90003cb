"""Judges production after a run, and changes the flag where that is proven."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.production.watch_production import watch_production
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("watch_production", event):
        return watch_production(event, services=wiring.services())
