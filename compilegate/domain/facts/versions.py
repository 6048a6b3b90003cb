"""Framework versions as people write them: ``2.1`` names every ``2.1.x``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol


class Versions(Protocol):
    """What names an image: a framework's versions, or a row of a table of images."""

    @property
    def version(self) -> str: ...  # noqa: D102 — the class says it
    @property
    def transformers(self) -> str | None: ...  # noqa: D102
    @property
    def python(self) -> str | None: ...  # noqa: D102


@lru_cache(maxsize=1024)
def parts(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for ordering: ``2.13.0a1`` is (2, 13, 0)."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in numbers[0].split(".")) if numbers else ()


def matches(version: str, available: str) -> bool:
    """Whether ``available`` is ``version``, or a release within it."""
    return available == version or (
        bool(version) and available.startswith(version) and available[len(version)] in ".-"
    )


def age(row: Versions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For ordering rows from the oldest versions to the newest."""
    return parts(row.version), parts(row.transformers or "")


def label(row: Versions) -> str:
    """``1.11.0 with transformers 4.21.1 (py38)``."""
    transformers = f" with transformers {row.transformers}" if row.transformers else ""
    return f"{row.version}{transformers}{f' ({row.python})' if row.python else ''}"
