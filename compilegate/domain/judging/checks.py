"""The figures of one equivalence check, as a job recorded them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain.codec import DocumentError, read, stored_as
from compilegate.domain.faults import JobClass

FIRST, LAST = "first", "last"
# A job has nine parts, in two arithmetics at most.
MOST_PARTS = 100


@dataclass(frozen=True)
class Errors:
    """Relative errors of the whole gradient, step by step; None where one is not finite."""

    compiled: tuple[float | None, ...]
    eager: tuple[float | None, ...]


@dataclass(frozen=True)
class Total(Errors):
    """``epsilon`` is the precision in which the arm computes."""

    epsilon: float


@dataclass(frozen=True)
class Part:
    """``ratio`` is the largest of the ``compared`` tensors, None where one is not finite."""

    part: str
    arithmetic: str
    compared: int
    ratio: float | None
    where: str = ""
    total: Total | None = None

    @property
    def name(self) -> str:
        """As bounds are named."""
        return f"{self.part}.{self.arithmetic}"


@dataclass(frozen=True)
class Unseen:
    """``share`` of a part that was not looked at, and the code of why."""

    part: str
    code: str
    share: float


# Stands for parts that are broken, or too many.
UNREADABLE = Unseen("part", "unreadable", 1.0)


@dataclass(frozen=True)
class Check:
    """The parts that were compared, and those that apply and were not.

    A model of which nothing can be compared has no class.
    """

    schema: int
    check: str
    weights: str
    job_class: JobClass | None = field(metadata=stored_as("class"))
    parts: tuple[Part, ...]
    unseen: tuple[Unseen, ...]


@dataclass(frozen=True)
class _Recorded(Check):
    """As a job left it: anything may stand among its parts."""

    parts: tuple[Any, ...]
    unseen: tuple[Any, ...]


def read_check(document: object) -> Check | None:
    """A recorded check, None where it cannot be read.

    A part that is broken counts as one that was not looked at: another that fails still does.
    """
    try:
        recorded = read(_Recorded, document)
    except DocumentError:
        return None
    if recorded.schema != 1 or recorded.weights not in (FIRST, LAST):
        return None
    parts = [
        one
        for one in read(tuple[Part | Any, ...], recorded.parts[:MOST_PARTS])
        if isinstance(one, Part) and one.compared >= 1 and (one.ratio is None or one.ratio >= 0)
    ]
    unseen = [
        one
        for one in read(tuple[Unseen | Any, ...], recorded.unseen[:MOST_PARTS])
        if isinstance(one, Unseen) and 0 <= one.share <= 1
    ]
    if len(parts) + len(unseen) < len(recorded.parts) + len(recorded.unseen):
        unseen.append(UNREADABLE)
    return replace(recorded, parts=tuple(parts), unseen=tuple(unseen))


@dataclass(frozen=True)
class OlderCheck:
    """``numerics``, which jobs of 0.2.0 recorded."""

    checked: bool
    epsilon: float
    gradient_error: Errors


def read_older(document: object) -> Total | None:
    """The errors of a check as 0.2.0 recorded it; None where there is none, or it is broken."""
    try:
        older = read(OlderCheck, document)
    except DocumentError:
        return None
    return Total(**vars(older.gradient_error), epsilon=older.epsilon) if older.checked else None
