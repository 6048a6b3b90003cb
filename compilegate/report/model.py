"""What a report is made from and what it consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

Document = Mapping[str, Any]


class Context(TypedDict):
    """Where the trial ran; ``simulated`` says in one sentence what was not the real thing."""

    stage: str
    trial: str
    simulated: NotRequired[str | None]
    workload: NotRequired[str | None]  # needed only where there is no decision
    failure: NotRequired[str | None]  # why a trial ended without a decision
    place: NotRequired[str | None]  # where the report lies, if no command shows it


class ReportInput(TypedDict):
    """The trial's records as they are stored; a record that was never written is None."""

    decision: Document | None
    evidence: Document | None
    eligibility: Document | None
    plan: Document | None
    flag: NotRequired[Document | None]  # what became of the flag, once that is settled
    context: Context


@dataclass(frozen=True)
class Report:
    """``html`` needs no other file; ``subject`` is ASCII of less than 100 characters (SNS)."""

    html: str
    markdown: str
    json: str
    subject: str
    message: str
