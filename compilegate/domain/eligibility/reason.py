"""One finding of a rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a reason weighs: ``block`` alone makes ineligible."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"


@dataclass(frozen=True)
class Reason:
    """One finding: ``field`` of the workload file, what was found, what helps, and who says so."""

    code: str
    severity: Severity
    field: str
    message: str
    fix: str
    source: str


def block(code: str, field: str, message: str, *, fix: str, source: str) -> Reason:
    """A reason that stands in the way."""
    return Reason(code, Severity.BLOCK, field, message, fix, source)


def warn(code: str, field: str, message: str, *, fix: str, source: str) -> Reason:
    """A reason to be careful."""
    return Reason(code, Severity.WARN, field, message, fix, source)


def info(code: str, field: str, message: str, *, fix: str, source: str) -> Reason:
    """A reason worth knowing."""
    return Reason(code, Severity.INFO, field, message, fix, source)


def in_one_line(fix: str) -> str:
    """A fix with lines to copy, for where a text has one line."""
    lines = [" ".join(line.split()) for line in fix.split("\n")]
    text = lines[0]
    for line in lines[1:]:
        text += f" {line}" if text.endswith((":", ",")) else f"; {line}"
    return text
