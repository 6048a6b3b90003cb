"""Decides whether a compiler could apply and pay at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.check_eligibility import check_eligibility
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("check_eligibility", event):
        return check_eligibility(event, services=wiring.services())
