"""Judges the trial so far and asks for the next jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.judge_arms import judge_arms
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer goes back to the state machine."""
    with logged("judge_arms", event):
        return judge_arms(event, services=wiring.services())
