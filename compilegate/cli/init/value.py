"""A value of a proposed workload file, with what the file says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

READ, ASSUMED, OPEN = "read", "assumed", "open"


@dataclass(frozen=True)
class Value:
    """A value with what the file says of it; ``origin`` is READ, ASSUMED or OPEN."""

    value: Any
    note: str = ""
    origin: str = READ


Section = dict[str, Value]
