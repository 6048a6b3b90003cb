"""Values that may be unknown, which None says and never 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)
T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")


def without_none(values: Iterable[T | None]) -> list[T]:
    """Those that are not None, in their order."""
    return [value for value in values if value is not None]


def with_known(items: Iterable[Item], of: Callable[[Item], T | None]) -> list[tuple[Item, T]]:
    """Each item with what ``of`` says of it, where that is known."""
    return [(item, value) for item in items if (value := of(item)) is not None]


def largest(values: Iterable[Number | None]) -> Number | None:
    """The largest that is known, None where none is."""
    return max(without_none(values), default=None)


def map_optional(value: T | None, use: Callable[[T], Result]) -> Result | None:
    """``use(value)``, None without a value."""
    return None if value is None else use(value)
