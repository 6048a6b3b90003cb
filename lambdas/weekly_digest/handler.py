"""Tells every owner what their week was like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.digest import send_digests
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer stands in the log of the function alone."""
    with logged("weekly_digest", event):
        return send_digests(event, services=wiring.services(), topic=wiring.topic())
