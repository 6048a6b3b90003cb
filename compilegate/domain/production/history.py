"""The history of a workload: a fold over the entries of its ledger.

The order of the entries does not matter, and one that is there twice counts once. A step reads
the ledger once, folds it, and passes the value on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from compilegate.domain.claims import command_at
from compilegate.domain.errors import InvalidInputError, UnreadableRecordError
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.records import ledger
from compilegate.domain.records.canary import CanaryClosed, CanaryReported, CanaryRound, CanaryToken
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.ledger import DamagedRecord, Record
from compilegate.domain.records.registrations import RegistrationChange
from compilegate.domain.records.reviews import ProbationEnd, Review
from compilegate.domain.records.runs import BegunRun, CapacityWait, ProductionRun
from compilegate.domain.records.trials import (
    ApprovalAnswer,
    ApprovalRequested,
    ApprovalToken,
    TrialDecided,
    TrialFailed,
    TrialStarted,
)

_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Approval:
    """A promotion that waits for a person; ``answer`` is None while it is open.

    ``tokens`` wake the waiting trial, oldest first.
    """

    asked: ApprovalRequested
    tokens: tuple[str, ...] = ()
    answer: ApprovalAnswer | None = None

    @property
    def trial(self) -> str:
        """The trial whose promotion waits."""
        return self.asked.trial

    @property
    def approved(self) -> bool:
        """Whether a person has approved; no answer is a refusal."""
        return self.answer is not None and self.answer.approved


@dataclass(frozen=True)
class WorkloadHistory:
    """Everything that the ledger says of one workload, each kind in the order of time.

    Runs are ordered by when they started, not by when they were recorded: events arrive late and
    out of order.
    """

    records: tuple[Record, ...] = ()
    readable_flags: tuple[FlagVersion, ...] = ()
    begun: tuple[BegunRun, ...] = ()
    waits: tuple[CapacityWait, ...] = ()
    runs: tuple[ProductionRun, ...] = ()
    rounds: tuple[CanaryRound, ...] = ()
    reviews: tuple[Review, ...] = ()
    probation_ends: tuple[ProbationEnd, ...] = ()
    started: tuple[TrialStarted, ...] = ()
    decided: tuple[TrialDecided, ...] = ()
    failed: tuple[TrialFailed, ...] = ()
    approvals: tuple[Approval, ...] = ()
    registrations: tuple[RegistrationChange, ...] = ()

    @cached_property
    def flags(self) -> tuple[FlagVersion, ...]:
        """Every change of the flag.

        Raises UnreadableRecordError where one is damaged: the others may say that it is on.
        """
        for record in self.damaged:
            if record.kind == FlagVersion.kind:
                raise UnreadableRecordError(record.problem)
        return self.readable_flags

    @property
    def damaged(self) -> tuple[DamagedRecord, ...]:
        """The entries that cannot be read."""
        return tuple(record for record in self.records if isinstance(record, DamagedRecord))

    @property
    def flag(self) -> Flag:
        """What the flag is by the ledger; off before the first change; raises as ``flags``."""
        return self.flags[-1].flag if self.flags else OFF

    @property
    def is_retired(self) -> bool:
        """Whether the workload was taken out of production and has not come back."""
        return bool(self.registrations) and not self.registrations[-1].active

    @cached_property
    def ended_runs(self) -> frozenset[str]:
        """The runs of which at least one job has ended."""
        return frozenset(run.run for run in self.runs)

    @cached_property
    def ended_trials(self) -> frozenset[str]:
        """The trials that have a decision or have failed."""
        decided = (decision.trial for decision in self.decided)
        return frozenset((*decided, *(failure.trial for failure in self.failed)))

    def begun_run(self, run: str) -> BegunRun | None:
        """How a run began, None for one that never did."""
        return next((begun for begun in self.begun if begun.run == run), None)

    def run_of_execution(self, execution: str) -> BegunRun | None:
        """The run that an execution owns, None where it owns none."""
        return next((begun for begun in self.begun if begun.execution == execution), None)

    def waits_of(self, run: str) -> tuple[CapacityWait, ...]:
        """A run's attempts that got no capacity."""
        return tuple(wait for wait in self.waits if wait.run == run)

    def review_of(self, run: str) -> Review | None:
        """The review after a run, None before it."""
        return next((review for review in self.reviews if review.run == run), None)

    def reviews_of(self, trial: str, *, since: int) -> tuple[Review, ...]:
        """The reviews of a trial's promotion from epoch second ``since`` on."""
        return tuple(
            review for review in self.reviews if review.trial == trial and review.at >= since
        )

    def rounds_of(self, trial: str) -> tuple[CanaryRound, ...]:
        """The canary rounds of a trial."""
        return tuple(one for one in self.rounds if one.trial == trial)

    def approval_of(self, trial: str) -> Approval | None:
        """The question whether a trial's promotion may take effect, None where it was not asked."""
        return next((one for one in self.approvals if one.trial == trial), None)


def history(entries: Iterable[Mapping[str, Any]]) -> WorkloadHistory:
    """Fold the entries of one workload, or those of a part of its ledger."""
    unique = {record.key: record for record in map(ledger.read, entries)}
    records = sorted(unique.values(), key=lambda record: (record.at, record.key))
    groups: dict[type, list[Any]] = defaultdict(list)
    for record in records:
        groups[type(record)].append(record)

    def of(kind: type[_Kind]) -> list[_Kind]:
        return groups[kind]

    return WorkloadHistory(
        records=tuple(records),
        readable_flags=tuple(sorted(of(FlagVersion), key=lambda one: one.version)),
        begun=tuple(sorted(of(BegunRun), key=lambda one: (one.at, one.run))),
        waits=tuple(of(CapacityWait)),
        runs=tuple(sorted(of(ProductionRun), key=lambda one: (one.started_at, one.run, one.job))),
        rounds=_rounds(of(CanaryRound), of(CanaryToken), of(CanaryClosed), of(CanaryReported)),
        reviews=tuple(sorted(of(Review), key=lambda one: (one.at, one.run))),
        probation_ends=tuple(of(ProbationEnd)),
        started=tuple(of(TrialStarted)),
        decided=tuple(of(TrialDecided)),
        failed=tuple(of(TrialFailed)),
        approvals=_approvals(of(ApprovalRequested), of(ApprovalToken), of(ApprovalAnswer)),
        registrations=tuple(sorted(of(RegistrationChange), key=lambda one: one.revision)),
    )


def _rounds(
    opened: Sequence[CanaryRound],
    tokens: Sequence[CanaryToken],
    closed: Sequence[CanaryClosed],
    reported: Sequence[CanaryReported],
) -> tuple[CanaryRound, ...]:
    """Each round with what later entries say of it, by trial and number."""
    reasons = {(one.trial, one.round): one.reason for one in closed}
    ended = {(one.trial, one.round) for one in reported}
    waiting: dict[tuple[str, int], list[str]] = defaultdict(list)
    for one in sorted(tokens, key=lambda one: one.number):
        waiting[one.trial, one.round].append(one.token)
    return tuple(
        replace(
            one,
            closed=reasons.get((one.trial, one.round)),
            reported=(one.trial, one.round) in ended,
            tokens=tuple(waiting[one.trial, one.round]),
        )
        for one in sorted(opened, key=lambda one: (one.trial, one.round))
    )


def _approvals(
    asked: Sequence[ApprovalRequested],
    tokens: Sequence[ApprovalToken],
    answers: Sequence[ApprovalAnswer],
) -> tuple[Approval, ...]:
    """Each question with its tokens and its answer, by when it was asked."""
    answered = {one.trial: one for one in answers}
    waiting: dict[str, list[str]] = defaultdict(list)
    for one in sorted(tokens, key=lambda one: one.number):
        waiting[one.trial].append(one.token)
    return tuple(
        Approval(one, tuple(waiting[one.trial]), answered.get(one.trial))
        for one in sorted(asked, key=lambda one: (one.at, one.trial))
    )


# The approval of a promotion: which question a person answers, and answers that contradict.


def unanswered(approvals: Sequence[Approval]) -> list[Approval]:
    """The open questions, in their order."""
    return [approval for approval in approvals if approval.answer is None]


def answerable(approvals: Sequence[Approval], *, workload: str, stage: str) -> Approval:
    """What a person can answer: the newest open question, else the newest that was answered.

    Raises InvalidInputError where there is none.
    """
    if not approvals:
        raise InvalidInputError(
            "has no promotion that waits for approval", field="WORKLOAD", value=workload,
            fix=f"see `{command_at('compilegate status', stage)}` for what waits",
        )  # fmt: skip
    return (unanswered(approvals) or approvals)[-1]


def check_answer(answer: ApprovalAnswer, *, approved: bool, workload: str, stage: str) -> None:
    """Raises InvalidInputError where the recorded answer is the other one."""
    if answer.approved is approved:
        return
    off = command_at(f'compilegate flag revert {workload} --reason "..."', stage)
    on = command_at(f'compilegate flag set {workload} --candidate NAME --reason "..."', stage)
    raise InvalidInputError(
        f"was already answered: {answer_words(answer)} ({answer.reason})",
        field=workload,
        fix=f"to turn it off: {off}" if answer.approved else f"to turn it on anyway: {on}",
    )


def answer_words(answer: ApprovalAnswer) -> str:
    """``approved by ana``."""
    outcome = "approved" if answer.approved else "not approved"
    return f"{outcome} by {answer.by.removeprefix(HUMAN)}"
