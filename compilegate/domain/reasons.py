"""A reason: a code, what was observed, and what helps.

Eligibility, planning, the judge and the review of production all give reasons of this one class.
What a code means, and the words for it, are in ``reasons.toml``: headlines and advice are looked
up there, never taken from a reason's message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Self

from compilegate.domain.codec import DocumentError
from compilegate.domain.errors import shown
from compilegate.domain.outside import VALUE_MAX, visible
from compilegate.domain.wording import fill, sentences

# The texts of a finding.
TEXTS = ("message", "field", "fix", "source")


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

    def as_document(self) -> dict[str, Any]:
        """The reason as a decision document has it."""
        document = {"code": self.code, "arm": self.arm, "message": self.message}
        return {**document, "fix": self.fix} if self.fix else document

    @classmethod
    def from_document(cls, document: Any, place: str) -> Self:
        """The reason of a decision document or of a ledger entry; raises DocumentError."""
        if not isinstance(document, Mapping):
            raise DocumentError(f"{place} is {shown(document)}")
        code, arm = str(document.get("code") or ""), document.get("arm")
        message, fix = str(document.get("message") or code), str(document.get("fix") or "")
        return cls(code, message, None if arm is None else str(arm), fix=fix)

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
    """What one code means, for documentation, headlines and advice: a row of ``reasons.toml``.

    ``page`` is the part of the file that the code is in. ``says`` has the templates of a finding of
    eligibility, of a code with several situations for each of them.
    """

    page: str
    severities: tuple[Severity, ...]
    meaning: str
    fix: str = ""
    headline: str = ""
    variants: Mapping[str, str] = field(default_factory=dict)
    says: Mapping[str, Any] = field(default_factory=dict)


@cache
def registry() -> Mapping[str, ReasonKind]:
    """Every code, read on first use: most steps give reasons and phrase none."""
    pages = sentences(Path(__file__).with_suffix(".toml"))
    return {
        code: ReasonKind(page, **{**row, "severities": tuple(map(Severity, row["severities"]))})
        for page, rows in pages.items()
        for code, row in rows.items()
    }


def headline(code: str, variant: str | None = None) -> str:
    """The template that completes a verdict; empty for a code that has none."""
    kind = registry().get(code)
    return kind.variants.get(variant or "", kind.headline) if kind else ""


def advice(code: str) -> str:
    """What helps in every case of a code; empty where nothing needs to be done."""
    kind = registry().get(code)
    return kind.fix if kind else ""


def advice_for(codes: Iterable[str]) -> list[str]:
    """What helps, said once each, in the order of the codes."""
    return list(dict.fromkeys(text for code in codes if (text := advice(code))))


def finding(code: str, situation: str = "", **values: Any) -> Reason:
    """What a rule of eligibility finds, as the registry says it in this situation.

    ``values`` are those that the templates name. What differs from case to case stands among them
    by its own name: ``message``, ``fix``, ``source``, ``field``, ``severity``.
    """
    kind = registry()[code]
    says = {"severity": kind.severities[0], "source": "workload file", **kind.says}
    if situation:
        says |= kind.says[situation]
    own = {key: str(values[key]) if key in values else fill(says[key], values) for key in TEXTS}
    return Reason(code, severity=values.get("severity", Severity(says["severity"])), **own)


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
