"""Asks a running local cloud to fail in a chosen way; for tests.

Only a cloud that was started with ``inject_failures=True`` obeys.
"""

from __future__ import annotations

import urllib.error
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from compilegate_localcloud.connection import RunState, call_emulator
from compilegate_localcloud.errors import NotReadyError


class Failure(StrEnum):
    """What the next calls or jobs can be made to meet."""

    THROTTLED = "throttle_create"
    """CreateTrainingJob answers ThrottlingException."""

    LIMIT_EXCEEDED = "limit_create"
    """CreateTrainingJob answers ResourceLimitExceeded."""

    NO_CAPACITY = "capacity_error"
    """A training job fails with CapacityError before it starts."""


def inject(state: RunState, failure: Failure, *, count: int = 1) -> None:
    """Let the next ``count`` chances fail; zero takes back what has not happened yet."""
    _post(state, {"kind": failure.value, "count": count})


def set_quotas(state: RunState, instances: Mapping[str, int]) -> None:
    """Change the account's quotas of training instances by type, as AWS may at any time."""
    _post(state, {"quotas": dict(instances)})


def kill_job(state: RunState, job: str) -> None:
    """Kill a training job's process, as a machine without memory would (exit code 137)."""
    _post(state, {"kill_job": job})


def _post(state: RunState, document: dict[str, Any]) -> None:
    try:
        call_emulator(state, "failures", document)
    except urllib.error.HTTPError as error:
        answer = error.read().decode("utf-8", "replace")
        raise NotReadyError(f"The local cloud refused the failure: {answer}") from error
