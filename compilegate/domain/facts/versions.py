"""Framework versions as people write them: ``2.1`` names every ``2.1.x``."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=1024)
def parts(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for ordering: ``2.13.0a1`` is (2, 13, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def matches(asked: str, available: str) -> bool:
    """Whether ``available`` is the version asked for, or a later part of it."""
    return available == asked or (
        bool(asked) and available.startswith(asked) and available[len(asked)] in ".-"
    )
