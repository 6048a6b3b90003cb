"""Takes the answer to a promotion that waited; silence is a no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.approval import close_approval
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("close_approval", event):
        return close_approval(event, services=wiring.services())
