"""Writes the decision into the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.record_decision import record_decision
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("record_decision", event):
        return record_decision(event, services=wiring.services())
