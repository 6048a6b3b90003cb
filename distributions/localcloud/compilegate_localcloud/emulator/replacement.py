"""What the tables of replaced parts consist of. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Replacement:
    """``target`` is a dotted name, ``signature`` its parameters in the library (a type for data).

    ``unnecessary_once`` is the upstream change that would allow to remove it.
    """

    target: str
    signature: str
    why: str
    unnecessary_once: str

    @property
    def library(self) -> str:
        """The package that it is part of."""
        return self.target.partition(".")[0]
