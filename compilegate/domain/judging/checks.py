"""The figures of one equivalence check, as a job recorded them."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilegate.domain.codec import DocumentError, read, stored_as
from compilegate.domain.faults import JobClass

FIRST, LAST = "first", "last"


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


def read_check(document: object) -> Check | None:
    """A recorded check; None where anything of it is broken."""
    try:
        check = read(Check, document)
    except DocumentError:
        return None
    sound = (
        check.schema == 1
        and check.weights in (FIRST, LAST)
        and all(one.compared >= 1 and (one.ratio is None or one.ratio >= 0) for one in check.parts)
        and all(0 <= one.share <= 1 for one in check.unseen)
    )
    return check if sound else None


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
