"""One number of an explanation, and the questions that the numbers answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from compilegate.domain.codec import rounded

ANSWER = "answer"


class Section(StrEnum):
    """The questions, in the order in which the judge asks them."""

    FAIRNESS = "fairness"
    WORTH = "worth"
    SPEED = "speed"
    EQUIVALENCE = "equivalence"
    FULL_RUNS = "full_runs"
    QUALITY = "quality"
    PROBATION = "probation"
    MONEY = "money"
    NEXT = "next"


@dataclass(frozen=True)
class Item:
    """A number as the judge computed it.

    ``source`` names the domain's function or constant that it came from. Items that follow each
    other under one name are rows of one table. The item named ``answer`` opens its section.
    """

    section: Section
    arm: str | None
    name: str
    symbol: str | None
    value: Any
    unit: str | None
    formula: str | None
    inputs: Mapping[str, Any]
    source: str | None
    words: str

    def to_dict(self) -> dict[str, Any]:
        """The item as JSON; infinite values are null."""
        inputs = {key: _finite(value) for key, value in self.inputs.items()}
        document: dict[str, Any] = rounded(
            {**vars(self), "value": _finite(self.value), "inputs": inputs}
        )
        return document


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
