"""Puts a promotion to the people who have to agree to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.approval import ask_approval
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("ask_approval", event):
        return ask_approval(event, services=wiring.services())
