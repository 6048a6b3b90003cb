"""Gives the workload's lease back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.ports import Services
from compilegate.usecases.trial import Trial


def release_lock(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Release the lease if this execution still holds it; harmless to repeat."""
    services.locks.release(Trial.from_event(event).workload, str(event["execution"]))
    return {}
