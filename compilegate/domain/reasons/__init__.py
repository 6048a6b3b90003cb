"""A reason: a code, what was observed, and what helps.

Eligibility, planning, the judge and the watch over production all give reasons of this one class.
What a code means, and the words for it, are in ``registry``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from compilegate.domain.outside import VALUE_MAX, visible


class Severity(StrEnum):
    """``block`` prevents a trial or a promotion, ``warn`` is a risk, ``info`` is a note."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"


@dataclass(frozen=True)
class Reason:
    """Programs read the code, people the message; nothing may depend on the message's words.

    ``arm`` is None where the reason is about the trial as a whole. ``fix`` says what helps in this
    case; the registry has the advice that holds for every case of a code. ``severity``, ``field``
    of the workload file and ``source`` of the knowledge are eligibility's; a decision's reasons
    have the severity that the registry gives their code.
    """

    code: str
    message: str
    arm: str | None = None
    severity: Severity | None = None
    field: str = ""
    fix: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        """Text of a job, a file or a service may be in it: what cannot be shown is by its code."""
        object.__setattr__(self, "message", visible(self.message)[:VALUE_MAX])
        object.__setattr__(self, "fix", visible(self.fix)[:VALUE_MAX])

    def to_dict(self) -> dict[str, Any]:
        """The reason as a decision document has it."""
        document = {"code": self.code, "arm": self.arm, "message": self.message}
        return {**document, "fix": self.fix} if self.fix else document

    def to_finding(self) -> dict[str, str]:
        """The reason as an eligibility document has it."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "field": self.field,
            "message": self.message,
            "fix": self.fix,
            "source": self.source,
        }


@dataclass(frozen=True)
class ReasonKind:
    """What one code means, for documentation, headlines and advice.

    ``meaning`` and ``fix`` are the code's row in the documentation. ``headline`` completes a
    verdict in one line; ``variants`` are headlines of the same code in other situations. Both may
    name ``{speed}``, ``{times}`` (its ratio alone), ``{but}`` (the speed, then "but"),
    ``{metric}``, ``{margin}``, ``{promote}`` and ``{reject}``.
    """

    severities: tuple[Severity, ...]
    meaning: str
    fix: str = ""
    headline: str = ""
    variants: Mapping[str, str] = field(default_factory=dict)


def block(code: str, field: str, message: str, *, fix: str, source: str) -> Reason:
    """A reason that makes a candidate ineligible."""
    return Reason(code, message, None, Severity.BLOCK, field, fix, source)


def warn(code: str, field: str, message: str, *, fix: str, source: str) -> Reason:
    """A reason to be careful."""
    return Reason(code, message, None, Severity.WARN, field, fix, source)


def info(code: str, field: str, message: str, *, fix: str, source: str) -> Reason:
    """A reason that is a note."""
    return Reason(code, message, None, Severity.INFO, field, fix, source)


def in_one_line(fix: str) -> str:
    """A fix with lines to copy, for where a text has one line."""
    lines = [" ".join(line.split()) for line in fix.split("\n")]
    text = lines[0]
    for line in lines[1:]:
        text += f" {line}" if text.endswith((":", ",")) else f"; {line}"
    return text


def with_fix(message: str, fix: str) -> str:
    """Message and fix as one text for people."""
    return f"{message.rstrip('.')}. Fix: {in_one_line(fix).rstrip('.')}" if fix else message
