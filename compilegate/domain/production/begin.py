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
from compilegate.domain.flag_change import agrees, flag_of
from compilegate.domain.followers import HOLD, PERMANENT, REFRESH_EVERY, STALE, WATCHED
from compilegate.domain.optional import map_optional
from compilegate.domain.production import fingerprint
from compilegate.domain.production.attempts import Attempt, longest_run_seconds
from compilegate.domain.production.canary import Choice, open_slot
from compilegate.domain.production.history import (
    DAY_SECONDS,
    Promotion,
    WorkloadHistory,
    standing_promotion,
)
from compilegate.domain.production.holdback import holds_back
from compilegate.domain.production.job import RunJobs
from compilegate.domain.records.production import BegunRun, ProductionRun, Review
from compilegate.domain.workload.model import BASELINE

# Which arm the next production run trains: a pure function of flag, history and open questions.
#
# In this order: a canary run of a trial, the baseline wherever the flag is not clearly on, the runs
# that the judge requested, a baseline run from time to time, else the candidate.

# Why a run trains its arm; canary.py has one more.
SCHEDULED, FLAG, REFRESH, CONFIRM = "scheduled", "flag", "refresh", "confirm"
UNFIT, HOLDBACK = "unfit", "holdback"
UNREADABLE, MALFORMED, DIFFERS = "unreadable", "malformed", "differs"
# Those for which a flag that may be on was not followed.
PROBLEMS = (UNREADABLE, MALFORMED, DIFFERS, UNFIT)


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


def read_flag(
    name: str, text: str | None, history: WorkloadHistory, *, error: str | None = None
) -> FlagReading:
    """The flag as parameter and ledger have it; a damaged ledger never prevents training either.

    ``text`` is what the parameter ``name`` holds, None where it is absent; ``error`` says why it
    was not read. Where parameter and ledger differ the parameter gets the ledger's value. If either
    is on, this run follows neither: off may be meant, and on is not proven.
    """
    try:
        versions = history.flags
    except UnreadableRecordError as damaged:
        return FlagReading(text=text, problem=UNREADABLE, explanation=str(damaged))
    if error is not None:
        return FlagReading(problem=UNREADABLE, explanation=f"{name} cannot be read: {error}")
    try:
        flag = parse_flag(text)
    except InvalidInputError as malformed:
        explanation = f"{name} is malformed: {malformed}"
        return FlagReading(text=text, problem=MALFORMED, explanation=explanation, repair=True)
    recorded = flag_of(versions)
    if agrees(text, versions):
        promotion = standing_promotion(versions)
        is_measured = promotion is not None and not promotion.by_human
        return FlagReading(flag, text, promotion=promotion if is_measured else None)
    if not recorded.enabled and not flag.enabled:
        return FlagReading(recorded, text, repair=True)
    said, says = (f"on ({one.candidate})" if one.enabled else "off" for one in (flag, recorded))
    return FlagReading(
        recorded if flag.enabled else flag,
        text,
        problem=DIFFERS,
        explanation=f"{name} said {said} and the ledger {says}: the ledger's value was written "
        "again",
        repair=True,
    )


@dataclass(frozen=True)
class Situation:
    """What is known when a run begins.

    ``runs`` are those since the flag took its present value, in the order of time; ``in_flight``
    those begun meanwhile. ``canary`` is what a trial that waits for runs asks for, ``review`` the
    latest since then, with the runs that the judge wants next. ``held_back``: were the flag
    permanent, the run would train the baseline (holdback.py).
    """

    reading: FlagReading
    runs: Sequence[ProductionRun] = ()
    in_flight: Sequence[BegunRun] = ()
    canary: Choice | None = None
    review: Review | None = None
    held_back: bool = False
    refresh_every: int = REFRESH_EVERY


def next_arm(now: Situation) -> Choice:
    """Choose the arm; in doubt it is the baseline."""
    if now.canary is not None:
        return now.canary
    flag, problem = now.reading.flag, now.reading.problem
    if problem is not None:
        return Choice(BASELINE, problem)
    if not flag.enabled or flag.candidate is None:
        return Choice(BASELINE, STALE if flag.state == STALE else SCHEDULED)
    asked = _requested(now)
    arm, why, confirm = flag.candidate, FLAG, False
    if asked is not None and (asked.confirm or asked.arm == BASELINE):
        arm, why, confirm = asked.arm, CONFIRM if asked.confirm else REFRESH, asked.confirm
    elif flag.state in WATCHED and since_baseline(now) >= now.refresh_every - 1:
        arm, why = BASELINE, REFRESH
    elif flag.state == PERMANENT and now.held_back:
        arm, why = BASELINE, HOLDBACK
    overrides = {} if arm == BASELINE else flag.overrides
    return Choice(arm, why, overrides, confirm=confirm, decision_id=flag.decision_id)


def _requested(now: Situation) -> RequestedArm | None:
    """The first run that the judge requested and that has not begun since; None without one.

    An arm that is neither the baseline nor the flag's shows that the review is of another flag.
    """
    review = now.review
    if review is None:
        return None
    if any(run.arm not in (BASELINE, now.reading.flag.candidate) for run in review.requested):
        return None
    # What ended after the review it does not know of either.
    since = Counter((run.arm, run.confirm) for run in now.runs if run.ended_at > review.at)
    since.update((run.arm, run.confirm) for run in now.in_flight)
    for run in review.requested:
        if since[run.arm, run.confirm] <= 0:
            return run
        since[run.arm, run.confirm] -= 1
    return None


def since_baseline(now: Situation) -> int:
    """Runs of the candidate, begun ones too, since the last baseline run that is evidence."""
    count = 0
    for run in now.runs:
        if run.arm != BASELINE:
            count += run.counts
        elif run.counts and run.finished:
            count = 0
    for begun in sorted(now.in_flight, key=lambda one: (one.at, one.run)):
        count = 0 if begun.arm == BASELINE else count + 1
    return count


@dataclass(frozen=True)
class RunStart:
    """One execution at the beginning of a run.

    ``run`` is its id: two executions of the same scheduled time are one run. One that starts more
    than a day after that time is named by the day before its start.
    """

    workload: str
    execution: str
    run: str
    scheduled: str | None

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """Read the event: ``started`` and ``scheduled``, which may be None, are ISO times."""
        scheduled = event.get("scheduled")
        moment = milliseconds(str(scheduled or event["started"]))
        # Runs are found by the time of their ids; no schedule starts one as late as this.
        moment = max(moment, milliseconds(str(event["started"])) - 1000 * DAY_SECONDS)
        return cls(
            workload=str(event["workload"]),
            execution=str(event["execution"]),
            run=naming.trial_id(moment),
            scheduled=map_optional(scheduled, str),
        )


@dataclass(frozen=True)
class BeginInput:
    """What the decision rests on; ``now`` in epoch seconds.

    ``reading`` is the flag as parameter and ledger have it. ``jobs`` builds what production trains
    today, ``spec_key`` and ``source_key`` say where that lies. ``proven`` is what the promotion of
    ``reading`` was measured on, empty where nothing is compared.
    """

    start: RunStart
    reading: FlagReading
    history: WorkloadHistory
    jobs: RunJobs
    spec_key: str
    source_key: str
    now: int
    proven: fingerprint.Fingerprint = field(default_factory=dict)


def choose_run(inputs: BeginInput) -> BegunRun:
    """The run with the arm that is next, or on the baseline where that arm's job cannot be built.

    Raises InvalidInputError where the baseline's cannot either.
    """
    start, jobs, earlier = inputs.start, inputs.jobs, inputs.history.begun
    number = 1 + max((one.number for one in earlier), default=0)
    reading = _without_stale(inputs)
    now = situation(inputs.history, reading, jobs, now=inputs.now)
    choice = next_arm(replace(now, held_back=_is_held_back(inputs)))
    # A run that checks an alarm of the candidate: what it trains may be worse, so it stays back.
    suspected = choice.confirm and choice.arm != BASELINE
    held = suspected and jobs.trained.workload.policy.hold_models
    begun = BegunRun(
        at=inputs.now,
        run=start.run,
        execution=start.execution,
        arm=choice.arm,
        why=choice.why,
        # A new one for every run, so that chance shows; a trial that needs pairs sets it.
        seed=number if choice.seed is None else choice.seed,
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
        flag_explanation=reading.explanation,
        tags={**choice.tags, **({naming.TAG_RELEASE: HOLD} if held else {})},
    )
    try:
        jobs.request(begun, Attempt())
    except InvalidInputError as problem:
        if begun.arm == BASELINE:
            raise
        begun = replace(
            begun, arm=BASELINE, why=UNFIT, overrides={}, confirm=False, canary=None,
            decision_id=None, flag_problem=UNFIT, tags={},
            flag_explanation=f"{begun.arm} does not fit the registered job: {problem}",
        )  # fmt: skip
        jobs.request(begun, Attempt())
    return begun


def _is_held_back(inputs: BeginInput) -> bool:
    """By the run's id, and by the run before it."""
    run = inputs.start.run
    earlier = {one.run: one for one in inputs.history.begun if one.run < run}
    last = max(earlier, default=run)
    return holds_back(
        inputs.jobs.trained.workload,
        inputs.reading.flag.holdback,
        run=run,
        at=naming.time_of(run),
        last=naming.time_of(last),
        last_on_baseline=last in earlier and earlier[last].arm == BASELINE,
    )


def _without_stale(inputs: BeginInput) -> FlagReading:
    """The flag as the run may follow it: off where what it would train is unproven.

    The flag itself is changed after the run (review_production.py), which also reports it.
    """
    reading, jobs = inputs.reading, inputs.jobs
    if reading.promotion is None or not inputs.proven:
        return reading
    registered = fingerprint.registered_fingerprint(
        reading.promotion, jobs.trained, jobs.facts, region=jobs.site.region
    )
    changed = fingerprint.compare_with_proven(inputs.proven, registered).changed
    if not changed:
        return reading
    explanation = "; ".join(reason.message for reason in changed)
    off = Flag(enabled=False, state=STALE, candidate=reading.flag.candidate)
    return replace(reading, flag=off, explanation=explanation)


def situation(
    history: WorkloadHistory, reading: FlagReading, jobs: RunJobs, *, now: int
) -> Situation:
    """What has happened since the flag took its present value.

    A run that began longer ago than any run takes is not on its way any more: its execution was
    lost, and what it should have answered is asked again.
    """
    since = flag_since(reading.flag)
    recent = max(since, now - longest_run_seconds(jobs.trained.workload))
    return Situation(
        reading=reading,
        runs=[run for run in history.runs if run.started_at >= since],
        in_flight=[
            begun
            for begun in history.begun
            if begun.run not in history.ended_runs and begun.at >= recent
        ],
        canary=open_slot(history, now=now, job=jobs.trained.digest),
        review=next((one for one in reversed(history.reviews) if one.at >= since), None),
    )


def flag_since(flag: Flag) -> int:
    """When the flag took its present value, in epoch seconds; 0 where it does not say."""
    try:
        return milliseconds(flag.since or "") // 1000
    except InvalidInputError:
        return 0


def milliseconds(text: str) -> int:
    """Epoch milliseconds of an ISO time; raises InvalidInputError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        fix = "give an ISO time such as 2026-11-20T02:00:00Z"
        raise InvalidInputError("is not a time", field="scheduled", value=text, fix=fix) from error
    dated = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(dated.timestamp() * 1000)
