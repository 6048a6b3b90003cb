"""The history of a workload: a fold over the entries of its ledger.

The order of the entries does not matter, and one that is there twice counts once. A step reads
the ledger once, folds it, and passes the value on.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from operator import attrgetter
from typing import Any, TypeVar

from compilegate.domain.claims import command_at
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.flag_change import TRAIN, Versions, flag_of
from compilegate.domain.records import ledger, production, trials
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.ledger import DamagedRecord, Record

_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Approval:
    """A promotion that waits for a person; ``answer`` is None while it is open.

    ``tokens`` wake the waiting trial, oldest first.
    """

    asked: trials.ApprovalRequested
    tokens: tuple[str, ...] = ()
    answer: trials.ApprovalAnswer | None = None

    @property
    def trial(self) -> str:
        """The trial whose promotion waits."""
        return self.asked.trial


@dataclass(frozen=True)
class WorkloadHistory:
    """Everything that the ledger says of one workload, each kind in the order of time.

    Runs are ordered by when they started, not by when they were recorded: events arrive late and
    out of order. ``since`` (epoch seconds): it has no run that began before, nor its review, but
    some of the day before; None where it has all that there is.
    """

    since: float = -math.inf
    records: tuple[Record, ...] = ()
    readable_flags: tuple[FlagVersion, ...] = ()
    begun: tuple[production.BegunRun, ...] = ()
    waits: tuple[production.CapacityWait, ...] = ()
    runs: tuple[production.ProductionRun, ...] = ()
    rounds: tuple[production.CanaryRound, ...] = ()
    reviews: tuple[production.Review, ...] = ()
    probation_ends: tuple[production.ProbationEnd, ...] = ()
    started: tuple[trials.TrialStarted, ...] = ()
    decided: tuple[trials.TrialDecided, ...] = ()
    failed: tuple[trials.TrialFailed, ...] = ()
    approvals: tuple[Approval, ...] = ()
    registrations: tuple[production.RegistrationChange, ...] = ()

    @cached_property
    def flags(self) -> tuple[FlagVersion, ...]:
        """Every change of the flag.

        Raises UnreadableRecordError where one is damaged: the others may say that it is on.
        """
        for record in self.damaged:
            if record.kind == FlagVersion.kind:
                raise record.error
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

    @property
    def open_trials(self) -> tuple[trials.TrialStarted, ...]:
        """The trials that have begun and not ended, in the order in which they began."""
        return tuple(one for one in self.started if one.trial not in self.ended_trials)

    @property
    def open_approvals(self) -> tuple[Approval, ...]:
        """The questions without an answer, the oldest first."""
        return tuple(one for one in self.approvals if one.answer is None)

    def open_rounds_of(self, trial: str) -> tuple[production.CanaryRound, ...]:
        """The canary rounds of a trial that wait for runs."""
        return tuple(one for one in self.rounds_of(trial) if one.closed is None)

    def begun_run(self, run: str) -> production.BegunRun | None:
        """How a run began, None for one that never did."""
        return next((begun for begun in self.begun if begun.run == run), None)

    def run_of_execution(self, execution: str) -> production.BegunRun | None:
        """The run that an execution owns, None where it owns none."""
        return next((begun for begun in self.begun if begun.execution == execution), None)

    def waits_of(self, run: str) -> tuple[production.CapacityWait, ...]:
        """A run's attempts that got no capacity."""
        return tuple(wait for wait in self.waits if wait.run == run)

    def review_of(self, run: str) -> production.Review | None:
        """The review after a run, None before it."""
        return next((review for review in self.reviews if review.run == run), None)

    def reviews_of(self, trial: str, *, since: int) -> tuple[production.Review, ...]:
        """The reviews of a trial's promotion from epoch second ``since`` on."""
        return tuple(
            review for review in self.reviews if review.trial == trial and review.at >= since
        )

    def rounds_of(self, trial: str) -> tuple[production.CanaryRound, ...]:
        """The canary rounds of a trial."""
        return tuple(one for one in self.rounds if one.trial == trial)


def history(entries: Iterable[Mapping[str, Any]], *, since: float = -math.inf) -> WorkloadHistory:
    """Fold the entries of one workload, or those of a part of its ledger."""
    unique = {record.key: record for record in map(ledger.read, entries)}
    ordered = sorted(unique.items(), key=lambda item: (item[1].at, item[0]))
    records = [record for _, record in ordered]
    groups: dict[type, list[Any]] = defaultdict(list)
    for record in records:
        groups[type(record)].append(record)

    def of(kind: type[_Kind], *order: str) -> tuple[_Kind, ...]:
        return tuple(sorted(groups[kind], key=attrgetter(*order)) if order else groups[kind])

    return WorkloadHistory(
        since=since,
        records=tuple(records),
        readable_flags=of(FlagVersion, "version"),
        begun=of(production.BegunRun),
        waits=of(production.CapacityWait),
        runs=of(production.ProductionRun, "started_at", "run", "job"),
        rounds=_rounds(groups),
        reviews=of(production.Review),
        probation_ends=of(production.ProbationEnd),
        started=of(trials.TrialStarted),
        decided=of(trials.TrialDecided),
        failed=of(trials.TrialFailed),
        approvals=_approvals(groups),
        registrations=of(production.RegistrationChange, "revision"),
    )


def _rounds(groups: Mapping[type, Sequence[Any]]) -> tuple[production.CanaryRound, ...]:
    """Each round with what later entries say of it, by trial and number."""
    place_of = attrgetter("trial", "round")
    reasons = {place_of(one): one.reason for one in groups[production.CanaryClosed]}
    ended = {*map(place_of, groups[production.CanaryReported])}
    tokens = sorted(groups[production.CanaryToken], key=attrgetter("number"))
    return tuple(
        replace(
            opened,
            closed=reasons.get(place_of(opened)),
            reported=place_of(opened) in ended,
            tokens=tuple(one.token for one in tokens if place_of(one) == place_of(opened)),
        )
        for opened in sorted(groups[production.CanaryRound], key=place_of)
    )


def _approvals(groups: Mapping[type, Sequence[Any]]) -> tuple[Approval, ...]:
    """Each question with its tokens and its answer, by when it was asked."""
    answers = {one.trial: one for one in groups[trials.ApprovalAnswer]}
    tokens = sorted(groups[trials.ApprovalToken], key=attrgetter("number"))
    return tuple(
        Approval(
            asked,
            tuple(one.token for one in tokens if one.trial == asked.trial),
            answers.get(asked.trial),
        )
        for asked in groups[trials.ApprovalRequested]
    )


def check_answer(
    answer: trials.ApprovalAnswer, *, approved: bool, workload: str, stage: str
) -> None:
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


def answer_words(answer: trials.ApprovalAnswer) -> str:
    """``approved by ana``."""
    outcome = "approved" if answer.approved else "not approved"
    return f"{outcome} by {answer.by.removeprefix(HUMAN)}"


# The promotion that a flag stands for, and how long no trial starts after its revert.

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Promotion:
    """A candidate that is on, and the trial that measured it.

    ``at`` is when it was turned on, ``since`` when the flag took its present state (epoch
    seconds); ``version`` is that of the flag's latest change. ``by_human``: a person turned on
    what a trial had planned, with or without a measurement. ``metric`` names what the trial
    measured, empty until its evidence is read: runs of no other are compared with it.
    """

    trial: str
    candidate: str
    at: int
    since: int
    flag: Flag
    version: int
    by_human: bool = False
    metric: str = ""


def standing_promotion(versions: Versions) -> Promotion | None:
    """What is on, and the trial whose evidence it is compared with; None where there is none.

    A person who turns on what a trial has planned begins a promotion of their own; what no trial
    has planned has nothing to be compared with.
    """
    flag, proven = flag_of(versions), latest_promotion(versions)
    if not flag.enabled or flag.candidate is None or proven is None:
        return None
    was = proven.flag
    if (was.candidate, was.overrides) != (flag.candidate, flag.overrides):
        return None
    of_this_state = takewhile(
        lambda one: one.flag.enabled and one.flag.state == flag.state, reversed(versions)
    )
    return Promotion(
        trial=str(proven.trial),
        candidate=flag.candidate,
        at=proven.at,
        since=[one.at for one in of_this_state][-1],
        flag=flag,
        version=len(versions),
        by_human=proven.by_human,
    )


def latest_promotion(versions: Versions) -> FlagVersion | None:
    """The version by which a trial last turned a candidate on, None where none ever has."""
    return next(reversed(promotions(versions)), None)


def promotions(versions: Versions) -> Sequence[FlagVersion]:
    """The versions by which a trial's candidate was turned on, oldest first.

    What the review changes does not count.
    """
    return [
        version
        for version in versions
        if version.trial is not None and version.by != TRAIN and version.flag.enabled
    ]
