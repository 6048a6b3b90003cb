"""Ledger records of production runs: begun, waiting for capacity, ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.records import LedgerRecord

# Who starts the job: the TRAIN machine, or the team's own pipeline.
TRAIN, TEAM = "train", "team"


@dataclass(frozen=True)
class CanarySlot:
    """The slot of a run in a canary round of a trial."""

    trial: str
    round: int
    position: int


@dataclass(frozen=True)
class BegunRun(LedgerRecord):
    """What was decided when a run began; nothing of it changes later.

    ``execution`` owns the run. ``why`` says what made it train ``arm`` (begin.py). ``flag`` is
    the parameter as it was read, ``flag_problem`` why it was not followed, ``flag_told`` the same
    in words. ``number`` counts the workload's runs from 1. ``tags`` are its jobs' beside those
    that every job carries.
    """

    kind = "run_begun"
    key_form = "run#{run}#begun"

    at: int
    run: str
    execution: str
    arm: str
    why: str
    seed: int
    number: int
    spec_key: str
    source_key: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    confirm: bool = False
    canary: CanarySlot | None = None
    decision_id: str | None = None
    scheduled: str | None = None
    flag: str | None = None
    flag_problem: str | None = None
    flag_told: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CapacityWait(LedgerRecord):
    """An attempt that got no capacity, and what follows it.

    The next attempt starts after ``wait_seconds`` on ``next_instance_type``, None for the run's
    own. ``spent_seconds`` is how long this one took.
    """

    kind = "run_waiting"
    key_form = "run#{run}#wait#{attempt}"

    at: int
    run: str
    attempt: int
    job: str
    arm: str = ""
    reason: str | None = None
    spent_seconds: float = 0
    wait_seconds: float = 0
    next_instance_type: str | None = None


@dataclass(frozen=True)
class IgnoredJob(LedgerRecord):
    """A job that carries the workload's tags and is no run of it; ``code`` is the reason's."""

    kind = "job_ignored"
    key_form = "ignored#{job}"

    at: int
    job: str
    role: str
    code: str


@dataclass(frozen=True)
class ProductionRun(LedgerRecord):
    """A job of a production run that has ended.

    ``result`` is the run as evidence has it (docs/contracts.md: metric, wall_seconds,
    finished, applied, seed, fingerprint, …) without its loss curve. ``counts`` says whether it is
    evidence at all: not on a fallback instance, not without a record of its own. ``why`` says what
    made it train this arm. ``usd`` is None where a price is not known. ``at`` is when it was
    recorded.
    """

    kind = "run"
    key_form = "run#{run}#{job}"

    run: str
    job: str
    arm: str
    started_at: float
    ended_at: float
    result: Mapping[str, Any]
    counts: bool
    why: str
    launched_by: str = TRAIN
    status: str = "Completed"
    reason: str | None = None
    confirm: bool = False
    canary: CanarySlot | None = None
    decision_id: str | None = None
    instance_type: str | None = None
    usd: float | None = None
    billable_seconds: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    at: int = 0

    @property
    def finished(self) -> bool:
        """Whether it trained to its end."""
        return self.result.get("finished") is True

    @property
    def without_change(self) -> bool:
        """Whether its own record says that the arm's change was not applied."""
        return self.result.get("applied") is False
