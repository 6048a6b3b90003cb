"""Where our requests differ from the SDK's, and which differences are justified."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.conformance.stored import Flat

JUSTIFIED = Path(__file__).with_name("differences.json")
ABSENT = "absent"


@dataclass(frozen=True)
class Difference:
    """One value of one case; None where a side has none."""

    case: str
    path: str
    ours: Any
    sdk: Any


@dataclass(frozen=True)
class Justified:
    """A difference that is meant: ``ours`` and ``sdk`` are values, `absent`, or `*` for any.

    ``cases`` is a pattern of case names.
    """

    path: str
    cases: str
    ours: str
    sdk: str
    why: str

    def covers(self, difference: Difference) -> bool:
        """Whether this reason is about the difference."""
        return (
            difference.path == self.path
            and fnmatchcase(difference.case, self.cases)
            and _like(difference.ours, self.ours)
            and _like(difference.sdk, self.sdk)
        )


def _like(value: Any, expected: str) -> bool:
    if expected == "*":
        return value is not None
    return value is None if expected == ABSENT else str(value) == expected


def justified() -> list[Justified]:
    """Every difference that has a reason."""
    return [Justified(**row) for row in json.loads(JUSTIFIED.read_text())]


def differences(case: str, ours: Flat, sdk: Flat) -> list[Difference]:
    """Every value that is not the same on both sides."""
    paths = sorted({*ours, *sdk})
    return [
        Difference(case, path, ours.get(path), sdk.get(path))
        for path in paths
        if ours.get(path) != sdk.get(path)
    ]


def unjustified(items: Iterable[Difference]) -> list[Difference]:
    """What has no reason on file."""
    reasons = justified()
    return [item for item in items if not any(reason.covers(item) for reason in reasons)]


def occurrences(differing: Iterable[Difference]) -> Mapping[Justified, int]:
    """How many cases each reason explains."""
    items = list(differing)
    return {reason: sum(map(reason.covers, items)) for reason in justified()}
