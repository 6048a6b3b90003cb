"""Moments as text, always in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def iso(epoch: float) -> str:
    """Epoch seconds for programs, to the second: 2026-11-20T02:00:00Z."""
    return f"{datetime.fromtimestamp(epoch, tz=UTC):%Y-%m-%dT%H:%M:%SZ}"


def day(epoch: float) -> str:
    """The day of epoch seconds: 2026-11-20."""
    return f"{datetime.fromtimestamp(epoch, tz=UTC):%Y-%m-%d}"


def minute(epoch: float) -> str:
    """Epoch seconds for people, to the minute: 2026-11-20 02:00 UTC."""
    return f"{bare_minute(epoch)} UTC"


def bare_minute(epoch: float) -> str:
    """As ``minute``, where a heading already says UTC: 2026-11-20 02:00."""
    return f"{datetime.fromtimestamp(epoch, tz=UTC):%Y-%m-%d %H:%M}"


def month_of(epoch: float) -> tuple[float, float]:
    """The month that epoch seconds lie in: its first second, and that of the next month."""
    first = datetime.fromtimestamp(epoch, tz=UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    following = (first + timedelta(days=31)).replace(day=1)
    return first.timestamp(), following.timestamp()
