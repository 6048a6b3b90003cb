"""Stops jobs and releases leases of executions that have ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters import wiring
from compilegate.usecases.measure_day import measure_day
from compilegate.usecases.sweep import sweep
from lambdas.logs import logged


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run the use case; its answer stands in the log of the function alone."""
    with logged("sweep", event):
        services = wiring.services()
        try:
            return sweep(
                event, services=services, ends=wiring.execution_ends(), topic=wiring.topic()
            )
        finally:
            measure_day(services=services)
            wiring.limit_training_logs()
