"""Renders the trial's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.write_report import write_report
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("write_report", event):
        return write_report(event, services=wiring.services())
