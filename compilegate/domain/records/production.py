"""Ledger records of production: what it trains, its runs, their reviews, canary rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from compilegate.domain.codec import OMITTED, stored_as
from compilegate.domain.decision import ProbationStep, RequestedArm, RequestedFullRun
from compilegate.domain.reasons import Reason
from compilegate.domain.records import LedgerRecord

# Who starts the job: the TRAIN machine, or the team's own pipeline.
TRAIN, TEAM = "train", "team"
# Of a run's result: which metric it reached, which earlier releases did not record.
METRIC_NAME = "metric_name"


@dataclass(frozen=True)
class RegistrationChange(LedgerRecord):
    """One change of the registration; ``active`` is False where the workload was retired.

    ``changes`` are ``{field, before, after}`` each. ``document`` is the registration as stored
    (production/registration.py). Revisions begin at 1.
    """

    kind = "registered"
    key_form = "registered#{revision:08d}"
    RETIRED: ClassVar[str] = "retired"

    revision: int
    active: bool
    at: int = 0
    by: str | None = None
    changes: tuple[Mapping[str, Any], ...] = ()
    document: Mapping[str, Any] | None = field(default=None, metadata=stored_as("registration"))

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry, whose kind says whether it is active."""
        entry = super().to_entry()
        return entry if entry.pop("active") else {**entry, "kind": self.RETIRED}

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """Read a ledger entry."""
        return super()._read({**entry, "active": entry["kind"] == cls.kind})


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
    the parameter as it was read, ``flag_problem`` why it was not followed, ``flag_explanation`` the
    same in words. ``number`` counts the workload's runs from 1. ``tags`` are its jobs' beside those
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
    flag_explanation: str | None = None
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


@dataclass(frozen=True)
class PlannedTransition:
    """What a review does to the flag: written down before the flag is touched.

    ``value`` is the parameter's new text. ``change_id`` names the version that was reviewed.
    """

    change_id: str
    action: str
    value: str = field(metadata=stored_as("to"))
    reason: str
    decided_at: int

    @property
    def reviewed_version(self) -> int:
        """The version of the flag that was reviewed."""
        return int(self.change_id.split("#")[1])


@dataclass(frozen=True)
class SpeedSum:
    """The cumulative sum of a lost speed-up, and the latest baseline run that is in it.

    ``lost_at``: since when it says so (epoch seconds), None where it does not.
    """

    total: float
    run: str
    lost_at: int | None = None


@dataclass(frozen=True)
class Review(LedgerRecord):
    """One review of a promotion after a production run.

    ``verdict`` and ``next`` are the judge's, None where there was nothing to judge. ``changed`` is
    what differs from what was measured, ``differs`` the names of all that makes the promotion
    stale, ``not_compared`` what one side does not say. ``runs`` counts the runs that were judged,
    ``unseen`` the candidate's latest that could not be. ``message_kind`` is the kind of message
    that it is worth, None for none. ``speed`` is the sum after it (slower.py), None before the
    first.
    """

    kind = "review"
    key_form = "review#{run}"

    at: int
    run: str
    trial: str
    candidate: str = ""
    by_human: bool = False
    verdict: str | None = None
    next: ProbationStep | None = None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    changed: tuple[Reason, ...] = ()
    differs: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    runs: int = 0
    unseen: int = 0
    launched_by: tuple[str, ...] = ()
    cooldown_days: float = 0
    transition: PlannedTransition | None = field(default=None, metadata=stored_as("change"))
    decision_id: str | None = None
    decision_key: str | None = None
    evidence_key: str | None = None
    message_kind: str | None = field(default=None, metadata=stored_as("tell"))
    speed: SpeedSum | None = field(default=None, metadata=OMITTED)

    @property
    def action(self) -> str | None:
        """What it does to the flag, None where the flag stays."""
        return self.transition.action if self.transition else None

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the judge's reasons and of the notes beside them."""
        return frozenset(reason.code for reason in (*self.reasons, *self.notes))

    @property
    def requested(self) -> tuple[RequestedArm, ...]:
        """The runs that the judge wants next, in order."""
        return self.next.runs if self.next else ()

    def reason(self, code: str) -> str | None:
        """The judge's reason of this code in words, None without one."""
        return next((reason.message for reason in self.reasons if reason.code == code), None)

    def to_entry(self) -> dict[str, Any]:
        """The ledger entry; a reason is kept by its code and message."""
        reasons = {
            name: [{"code": one.code, "message": one.message} for one in getattr(self, name)]
            for name in ("reasons", "notes", "changed")
        }
        return {**super().to_entry(), **reasons}


@dataclass(frozen=True)
class ProbationEnd(LedgerRecord):
    """The last decision of a probation, beside the trial's own."""

    kind = "probation"
    key_form = "trial#{trial}#probation/{decision_id}"

    at: int
    trial: str
    run: str = ""
    decision_id: str = ""
    decision_key: str | None = None
    evidence_key: str | None = None
    verdict: str | None = None
    candidate: str | None = None
    judge_version: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class CanaryRound(LedgerRecord):
    """One round.

    ``arms`` are the overrides of each arm as a flag would hold them, the baseline's empty. ``job``
    is the digest of what the trial measures (``TrainedJob.digest``). After ``until`` the trial no
    longer waits for it; a slot whose run began ``slot_seconds`` ago without a result is free
    again. ``hold`` says whether candidate models wait for the verdict; those of ``on``, the arm
    that is on, do not.

    Later entries add: ``closed`` is the reason why it ended, None while it is open; ``reported``
    says that the waiting trial knows of that; ``tokens`` wake the trial, oldest first.
    """

    kind = "canary_opened"
    key_form = "canary#{trial}#{round:03d}"

    trial: str
    round: int
    runs: tuple[RequestedFullRun, ...]
    arms: Mapping[str, Mapping[str, Any]]
    job: str
    until: int
    slot_seconds: int
    hold: bool
    at: int = 0
    on: str = field(default="", metadata=OMITTED)
    closed: str | None = field(default=None, metadata=OMITTED)
    reported: bool = field(default=False, metadata=OMITTED)
    tokens: tuple[str, ...] = field(default=(), metadata=OMITTED)

    @classmethod
    def _read(cls, entry: Mapping[str, Any]) -> Self:
        """Read the entry that opens it; models are held unless it says that they are not."""
        return super()._read({**entry, "hold": entry["hold"] is not False})


@dataclass(frozen=True)
class CanaryToken(LedgerRecord):
    """A state machine that waits for the round's end; a repeated wait has a token of its own."""

    kind = "canary_token"
    key_form = "canary#{trial}#{round:03d}#token#{number:04d}"

    at: int
    trial: str
    round: int
    number: int
    token: str


@dataclass(frozen=True)
class CanaryClosed(LedgerRecord):
    """The round's end: the first entry says why."""

    kind = "canary_closed"
    key_form = "canary#{trial}#{round:03d}#closed"

    at: int
    trial: str
    round: int
    reason: str


@dataclass(frozen=True)
class CanaryReported(LedgerRecord):
    """The waiting trial knows of the round's end."""

    kind = "canary_reported"
    key_form = "canary#{trial}#{round:03d}#reported"

    at: int
    trial: str
    round: int
