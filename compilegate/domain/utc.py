"""Moments as text, always in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(epoch: float) -> str:
    """Epoch seconds for programs, to the second: 2026-11-20T02:00:00Z."""
    return f"{datetime.fromtimestamp(epoch, tz=UTC):%Y-%m-%dT%H:%M:%SZ}"


def minute(epoch: float) -> str:
    """Epoch seconds for people, to the minute: 2026-11-20 02:00 UTC."""
    return f"{datetime.fromtimestamp(epoch, tz=UTC):%Y-%m-%d %H:%M} UTC"
