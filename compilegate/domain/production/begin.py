"""What a run that begins trains: decided once, from the history and what was read beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from compilegate.domain import naming
from compilegate.domain.decision import RequestedArm
from compilegate.domain.errors import InvalidInputError, UnreadableRecordError
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.flag_change import Versions, agrees, flag_of
from compilegate.domain.followers import REFRESH_EVERY, STALE, WATCHED
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.canary import OpenSlot, open_slot
from compilegate.domain.production.fingerprint import Fingerprint, compare_with_proven
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.job_builder import JobBuilder
from compilegate.domain.production.promotion import Promotion, standing_promotion
from compilegate.domain.reasons import Reason
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.runs import BegunRun, CanarySlot, ProductionRun
from compilegate.domain.workload.model import BASELINE

# Which arm the next production run trains: a pure function of flag, history and open questions.
#
# In this order: a canary run of a trial, the baseline wherever the flag is not clearly on, the runs
# that the judge requested, a baseline run from time to time, else the candidate.

# Why a run trains its arm.
SCHEDULED, FLAG, REFRESH, CONFIRM, CANARY = "scheduled", "flag", "refresh", "confirm", "canary"
UNFIT = "unfit"
UNREADABLE, MALFORMED, DIFFERS = "unreadable", "malformed", "differs"
# Those for which a flag that may be on was not followed.
PROBLEMS = (UNREADABLE, MALFORMED, DIFFERS, UNFIT)


@dataclass(frozen=True)
class FlagParameter:
    """The parameter as it was read; ``text`` is None where it is absent, ``error`` says why not."""

    name: str
    text: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class FlagReading:
    """What a run may follow; ``problem`` says why not the flag, ``explanation`` in words.

    ``text`` is the parameter's value. ``repair``: the parameter does not hold what the ledger says.
    ``promotion`` is what the run would follow, None where that needs no comparison with its trial:
    what a person has turned on is followed without one.
    """

    flag: Flag = OFF
    text: str | None = None
    problem: str | None = None
    explanation: str | None = None
    repair: bool = False
    promotion: Promotion | None = None


def read_flag(parameter: FlagParameter, past: WorkloadHistory) -> FlagReading:
    """The flag as parameter and ledger have it; a damaged ledger never prevents training either.

    Where the two differ the parameter gets the ledger's value. If either is on, this
    run follows neither: off may be meant, and on is not proven.
    """
    name, text = parameter.name, parameter.text
    try:
        versions = past.flags
    except UnreadableRecordError as error:
        return FlagReading(text=text, problem=UNREADABLE, explanation=str(error))
    if parameter.error is not None:
        return FlagReading(
            problem=UNREADABLE, explanation=f"{name} cannot be read: {parameter.error}"
        )
    try:
        flag = parse_flag(text)
    except InvalidInputError as error:
        explanation = f"{name} is malformed: {error}"
        return FlagReading(text=text, problem=MALFORMED, explanation=explanation, repair=True)
    if agrees(text, versions):
        return FlagReading(flag, text, promotion=_measured_promotion(flag, versions))
    recorded = flag_of(versions)
    if not recorded.enabled and not flag.enabled:
        return FlagReading(recorded, text, repair=True)
    values = f"{name} said {_shown(flag)} and the ledger {_shown(recorded)}"
    return FlagReading(
        recorded if flag.enabled else flag,
        text,
        problem=DIFFERS,
        explanation=f"{values}: the ledger's value was written again",
        repair=True,
    )


def _measured_promotion(flag: Flag, versions: Versions) -> Promotion | None:
    """The promotion that the flag follows, where that is what a trial has measured."""
    promotion = standing_promotion(versions) if flag.enabled else None
    if promotion is None or promotion.by_human or promotion.flag != flag:
        return None
    return promotion


def without_stale(reading: FlagReading, changed: Sequence[Reason]) -> FlagReading:
    """The flag off where what the run would train is unproven.

    The flag itself is changed after the run (watch_production.py), which also reports it.
    """
    if not changed:
        return reading
    explanation = "; ".join(reason.message for reason in changed)
    off = Flag(enabled=False, state=STALE, candidate=reading.flag.candidate)
    return replace(reading, flag=off, explanation=explanation)


def _shown(flag: Flag) -> str:
    return f"on ({flag.candidate})" if flag.enabled else "off"


@dataclass(frozen=True)
class Situation:
    """What is known when a run begins.

    ``runs`` are those since the flag took its present value, in the order of time; ``in_flight``
    those begun meanwhile. ``review`` is the latest since then, with the runs that the judge wants
    next.
    """

    reading: FlagReading
    runs: Sequence[ProductionRun] = ()
    in_flight: Sequence[BegunRun] = ()
    canary: OpenSlot | None = None
    review: Review | None = None
    refresh_every: int = REFRESH_EVERY


@dataclass(frozen=True)
class Choice:
    """The arm of a run, and why; ``overrides`` are laid over the registered job.

    ``seed`` is the one that a trial asked for; ``tags`` are the job's beside every job's.
    """

    arm: str
    why: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    confirm: bool = False
    canary: CanarySlot | None = None
    seed: int | None = None
    decision_id: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


def next_arm(now: Situation) -> Choice:
    """Choose the arm; in doubt it is the baseline."""
    if now.canary is not None:
        slot = now.canary
        return Choice(
            slot.arm, CANARY, slot.overrides, canary=slot.slot, seed=slot.seed, tags=slot.tags
        )
    flag, problem = now.reading.flag, now.reading.problem
    if problem is not None:
        return Choice(BASELINE, problem)
    if not flag.enabled or flag.candidate is None:
        return Choice(BASELINE, STALE if flag.state == STALE else SCHEDULED)
    requested = _requested(now)
    if requested is not None and (requested.confirm or requested.arm == BASELINE):
        why = CONFIRM if requested.confirm else REFRESH
        return _of(flag, requested.arm, why, confirm=requested.confirm)
    if flag.state in WATCHED and _since_baseline(now) >= now.refresh_every - 1:
        return _of(flag, BASELINE, REFRESH)
    return _of(flag, str(flag.candidate), FLAG)


def _of(flag: Flag, arm: str, why: str, *, confirm: bool = False) -> Choice:
    overrides = {} if arm == BASELINE else flag.overrides
    return Choice(arm, why, overrides, confirm=confirm, decision_id=flag.decision_id)


def _requested(now: Situation) -> RequestedArm | None:
    """The first run that the judge requested and that has not begun since; None without one.

    An arm that is neither the baseline nor the flag's shows that the review is of another flag.
    """
    review = now.review
    if review is None:
        return None
    arms = (BASELINE, now.reading.flag.candidate)
    if any(run.arm not in arms for run in review.requested):
        return None
    since = Counter(_kind(run) for run in now.in_flight)
    # What ended after the review it does not know of either.
    since.update(_kind(run) for run in now.runs if run.ended_at > review.at)
    for run in review.requested:
        if since[run.arm, run.confirm] <= 0:
            return run
        since[run.arm, run.confirm] -= 1
    return None


def _kind(run: ProductionRun | BegunRun) -> tuple[str, bool]:
    return run.arm, run.confirm


def _since_baseline(now: Situation) -> int:
    """Runs of the candidate, begun ones too, since the last baseline run that is evidence."""
    count = 0
    for run in now.runs:
        count = 0 if run.arm == BASELINE and run.counts and run.finished else count + _other(run)
    for begun in sorted(now.in_flight, key=lambda one: (one.at, one.run)):
        count = 0 if begun.arm == BASELINE else count + 1
    return count


def _other(run: ProductionRun) -> int:
    return int(run.arm != BASELINE and run.counts)


@dataclass(frozen=True)
class RunStart:
    """One execution at the beginning of a run; ``started`` in epoch milliseconds."""

    workload: str
    execution: str
    started: int
    scheduled: str | None

    @property
    def run(self) -> str:
        """The run's id: two executions of the same scheduled time are one run."""
        return naming.trial_id(self.started)

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """Read the event: ``started`` and ``scheduled``, which may be None, are ISO times."""
        scheduled = event.get("scheduled")
        return cls(
            workload=str(event["workload"]),
            execution=str(event["execution"]),
            started=milliseconds(str(scheduled or event["started"])),
            scheduled=None if scheduled is None else str(scheduled),
        )


@dataclass(frozen=True)
class BeginInput:
    """What the decision rests on; ``now`` in epoch seconds.

    ``reading`` is the flag as parameter and ledger have it. ``jobs`` builds what production trains
    today, ``spec_key`` and ``source_key`` say where that lies. ``proven`` is what the promotion of
    ``reading`` was measured on, None where nothing is compared.
    """

    start: RunStart
    reading: FlagReading
    history: WorkloadHistory
    jobs: JobBuilder
    spec_key: str
    source_key: str
    now: int
    proven: Fingerprint | None = None


def choose_run(inputs: BeginInput) -> BegunRun:
    """The run with the arm that is next, or on the baseline where that arm's job cannot be built.

    Raises InvalidInputError where the baseline's cannot either.
    """
    begun = _begin(inputs, _flag_to_follow(inputs))
    problem = inputs.jobs.problem(begun, Attempt())
    if problem is not None and begun.arm != BASELINE:
        begun = _on_baseline(begun, str(problem))
        problem = inputs.jobs.problem(begun, Attempt())
    if problem is not None:
        raise problem
    return begun


def _flag_to_follow(inputs: BeginInput) -> FlagReading:
    """The flag as the run may follow it: off where what it would train is unproven."""
    promotion = inputs.reading.promotion
    if promotion is None or inputs.proven is None:
        return inputs.reading
    comparison = compare_with_proven(inputs.proven, inputs.jobs.fingerprint(promotion))
    return without_stale(inputs.reading, comparison.changed)


def _begin(inputs: BeginInput, reading: FlagReading) -> BegunRun:
    start, number = inputs.start, 1 + len(inputs.history.begun)
    choice = next_arm(situation(inputs.history, reading, inputs.jobs, now=inputs.now))
    return BegunRun(
        at=inputs.now,
        run=start.run,
        execution=start.execution,
        arm=choice.arm,
        why=choice.why,
        seed=_seed(choice, number),
        number=number,
        spec_key=inputs.spec_key,
        source_key=inputs.source_key,
        overrides=choice.overrides,
        confirm=choice.confirm,
        canary=choice.canary,
        decision_id=choice.decision_id,
        scheduled=start.scheduled,
        flag=reading.text,
        flag_problem=reading.problem,
        flag_told=reading.explanation,
        tags=choice.tags,
    )


def _on_baseline(begun: BegunRun, problem: str) -> BegunRun:
    """The run on the baseline instead: the candidate's job cannot be built any more."""
    return replace(
        begun, arm=BASELINE, why=UNFIT, overrides={}, confirm=False, canary=None, decision_id=None,
        flag_problem=UNFIT, tags={},
        flag_told=f"{begun.arm} does not fit the registered job: {problem}",
    )  # fmt: skip


def situation(
    history: WorkloadHistory, reading: FlagReading, jobs: JobBuilder, *, now: int
) -> Situation:
    """What has happened since the flag took its present value.

    A run that began longer ago than any run takes is not on its way any more: its execution was
    lost, and what it should have answered is asked again.
    """
    since = _since(reading.flag)
    recent = max(since, now - jobs.longest_seconds)
    reviews: Sequence[Review] = [review for review in history.reviews if review.at >= since]
    return Situation(
        reading=reading,
        runs=[run for run in history.runs if run.started_at >= since],
        in_flight=[
            begun
            for begun in history.begun
            if begun.run not in history.ended_runs and begun.at >= recent
        ],
        canary=open_slot(history, now=now, job=jobs.trained.digest),
        review=reviews[-1] if reviews else None,
    )


def milliseconds(text: str) -> int:
    """Epoch milliseconds of an ISO time; raises InvalidInputError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        fix = "give an ISO time such as 2026-11-20T02:00:00Z"
        raise InvalidInputError("is not a time", field="scheduled", value=text, fix=fix) from error
    dated = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(dated.timestamp() * 1000)


def _since(flag: Flag) -> int:
    """Epoch second from which the flag holds, 0 where it has no valid time."""
    try:
        return milliseconds(flag.since or "") // 1000
    except InvalidInputError:
        return 0


def _seed(choice: Choice, number: int) -> int:
    """A new seed for every run, so that chance shows; a trial that needs pairs sets it."""
    return number if choice.seed is None else choice.seed
