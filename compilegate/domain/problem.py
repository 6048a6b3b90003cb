"""What an error says: a problem, and what to do about it.

InvalidInputError keeps its parts itself. Any other error takes a ``ProblemWithFix`` as its message,
so that a program is given the fix without reading text meant for people.
"""

from __future__ import annotations

from typing import Any, Self

from compilegate.domain.errors import WorkloadLockedError, lost_lease

RESTART = "start another trial"


class ProblemWithFix(str):
    """One text for people, ``problem. Fix: fix``, that keeps its two parts."""

    problem: str
    fix: str

    def __new__(cls, problem: str, *, fix: str) -> Self:
        """The text of both."""
        text = super().__new__(cls, f"{problem}. Fix: {fix}")
        text.problem, text.fix = problem, fix
        return text

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """For copies, as of a record that holds one."""
        return (self.problem,), {"fix": self.fix}


def message_of(error: Exception) -> str:
    """What an error says; a ProblemWithFix where it was raised with one."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, ProblemWithFix) else str(error)


def parts_of(message: str) -> tuple[str, str | None]:
    """Problem and fix of a message; None for one that names no fix."""
    if isinstance(message, ProblemWithFix):
        return message.problem, message.fix
    return message, None


def lease_lost(workload: str, owner: str) -> WorkloadLockedError:
    """The error of an execution whose lease was taken from it."""
    return WorkloadLockedError(ProblemWithFix(lost_lease(workload, owner), fix=RESTART))
