"""One number of an explanation, and the questions that the numbers answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from compilegate.domain.arithmetic import rounded

ANSWER = "answer"


class Section(StrEnum):
    """The questions, in the order in which the judge asks them."""

    FAIRNESS = "fairness"
    WORTH = "worth"
    SPEED = "speed"
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
    value: Any
    words: str
    symbol: str | None = None
    unit: str | None = None
    formula: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The item as JSON; infinite values are null."""
        document: dict[str, Any] = rounded(
            {
                "section": str(self.section), "arm": self.arm, "name": self.name,
                "symbol": self.symbol, "value": _finite(self.value), "unit": self.unit,
                "formula": self.formula,
                "inputs": {key: _finite(value) for key, value in self.inputs.items()},
                "source": self.source, "words": self.words,
            }
        )  # fmt: skip
        return document


@dataclass(frozen=True)
class Reporter:
    """Writes the items of one section, about one arm where there are several."""

    section: Section
    arm: str | None = None

    def answer(self, value: Any, words: str, *, of: Callable[..., Any] | str | None = None) -> Item:
        """The section's question, answered."""
        return Item(self.section, self.arm, ANSWER, value, sentence(words), source=_place(of))

    def __call__(
        self,
        name: str,
        value: Any,
        words: str = "",
        *,
        symbol: str | None = None,
        unit: str | None = None,
        formula: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        of: Callable[..., Any] | str | None = None,
    ) -> Item:
        """One number; ``of`` is what computed it."""
        return Item(
            self.section, self.arm, name, value, words, symbol, unit, formula, inputs or {},
            _place(of),
        )  # fmt: skip


def sentence(text: str) -> str:
    """The text as a sentence of its own; a metric's name keeps its case."""
    name = "_" in text.partition(" ")[0]
    return f"{text[:1] if name else text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _place(of: Callable[..., Any] | str | None) -> str | None:
    if of is None or isinstance(of, str):
        return of
    return f"{of.__module__.removeprefix('compilegate.domain.')}.{of.__qualname__}"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
