"""What a document's reader expects of each key, and what was wrong with the document it read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from compilegate.domain.errors import InvalidInputError, together

# Stands for the default of a key that must be there.
REQUIRED = object()


@dataclass(frozen=True)
class Form:
    """What all of a text must look like; ``longest`` is in characters."""

    pattern: re.Pattern[str]
    problem: str
    fix: str
    longest: int | None = None

    def problem_of(self, text: str) -> tuple[str, str] | None:
        """What is wrong with a text, and the fix; None for a sound one."""
        fits = self.longest is None or len(text) <= self.longest
        return None if fits and self.pattern.fullmatch(text) else (self.problem, self.fix)


@dataclass(frozen=True)
class Expected:
    """One key as its reader asks for it; ``path`` is dotted, items of lists have their index.

    ``kind`` is the reader's name. Bounds are in ``unit``; ``above`` is one that is not allowed
    itself.
    """

    path: str
    kind: str
    default: object
    about: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf
    allowed: tuple[str, ...] = ()
    form: Form | None = None


@dataclass
class Reading:
    """What the reading of one document noted.

    ``errors`` are all that is wrong with it; ``expected`` collects what is asked for, if wanted.
    """

    errors: list[InvalidInputError] = field(default_factory=list)
    expected: list[Expected] | None = None

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Go on after the block where it raises InvalidInputError, which counts."""
        try:
            yield
        except InvalidInputError as error:
            self.errors.extend(error.each)

    def end(self) -> None:
        """Raise InvalidInputError with everything that is wrong, if anything is."""
        if self.errors:
            raise together(self.errors)
