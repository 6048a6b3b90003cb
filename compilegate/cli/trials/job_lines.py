"""Reads the progress lines that training jobs print, ``compilegate key=value; …``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compilegate.domain.request.sections import PROGRESS_LINE

_PREFIX = re.compile(PROGRESS_LINE)


@dataclass
class JobLines:
    """What one job has printed so far; figures by arm, because a speed job runs several arms."""

    arm: str | None = None
    block: int | None = None
    priming: bool = False  # fills its compile cache; measured blocks come after
    by_arm: dict[str | None, Mapping[str, float]] = field(default_factory=dict)
    token: str | None = None

    def take(self, lines: Iterable[str]) -> None:
        """Read more lines; those that are not progress are skipped."""
        for line in lines:
            values = _values(line)
            if not values:
                continue
            self.arm = values.get("arm", self.arm)
            if values.get("block", "").isdigit():
                self.block = int(values["block"])
            if "priming" in values or "blocks" in values:
                self.priming = "priming" in values
            if "step" in values:
                self.by_arm[self.arm] = _numbers(values)

    @property
    def turn(self) -> str:
        """The position of a speed job's current arm."""
        if self.priming:
            return "first compilation"
        return "" if self.block is None else f"block {self.block + 1}"

    @property
    def segment(self) -> str:
        """The speed job's current arm and its position, empty for a full run."""
        return f"{self.arm}, {self.turn}" if self.arm and self.turn else ""

    def latest(self, arm: str | None) -> Mapping[str, float]:
        """The arm's last figures, empty before the first."""
        return self.by_arm.get(arm, {})


def _values(line: str) -> dict[str, str]:
    prefix = _PREFIX.match(line)
    if prefix is None:
        return {}
    pairs = (part.partition("=") for part in line[prefix.end() :].replace(";", " ").split())
    return {key: value for key, equals, value in pairs if equals}


def _numbers(values: Mapping[str, str]) -> dict[str, float]:
    numbers = {}
    for key, text in values.items():
        try:
            number = float(text)
        except ValueError:
            continue
        if math.isfinite(number):
            numbers[key] = number
    return numbers
