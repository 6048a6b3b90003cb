"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compilegate.doctor.finding import COMPILERS, MANAGED_COMPILER, TORCH_COMPILE, Hit, Severity
from compilegate.doctor.script import Script

BOTH = COMPILERS
TORCH_ONLY = (TORCH_COMPILE,)
MANAGED_ONLY = (MANAGED_COMPILER,)


@dataclass(frozen=True)
class Rule:
    """One thing that the doctor reports.

    ``compilers`` are those it matters to, ``why`` explains it to someone who never met it,
    ``link`` is the page that says so.
    """

    id: str
    title: str
    severity: Severity
    compilers: tuple[str, ...]
    check: Callable[[Script], Iterable[Hit]]
    why: str
    fix: str
    link: str
