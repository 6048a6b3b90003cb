"""What a workload's history page is made from, and what it consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from compilegate.domain.production.history import WorkloadHistory
from compilegate.report.model import Document


class HistoryContext(TypedDict):
    """Where production runs; ``simulated`` says in one sentence what was not the real thing."""

    stage: str
    simulated: NotRequired[str | None]


class HistoryInput(TypedDict):
    """Everything that is known of one workload; what was never recorded is None or missing.

    ``history`` is the fold of its ledger. ``trials`` are the decisions of trials by their
    id. ``evidence`` is that of the latest promotion's probation. ``workload`` is what is registered
    now, ``faults`` the faults that registered specs asked for, by spec key.
    """

    name: str
    history: WorkloadHistory
    trials: Mapping[str, Document]
    evidence: Document | None
    workload: Document | None
    faults: Mapping[str, str]
    context: HistoryContext


@dataclass(frozen=True)
class Event:
    """One line of the timeline; ``at`` in epoch seconds.

    ``place`` is where it stands among the runs: 3 is the third run, 3.5 is after it. ``mark`` is
    its short name in the charts, None where they do not show it. ``kind`` is the ledger's.
    """

    at: float
    kind: str
    title: str
    text: str = ""
    tone: str = ""
    place: float = 0.0
    mark: str | None = None
    links: Sequence[str] = ()
    quiet: bool = False


@dataclass(frozen=True)
class HistoryReport:
    """``html`` needs no other file; ``headline`` is its one sentence."""

    html: str
    markdown: str
    json: str
    headline: str
