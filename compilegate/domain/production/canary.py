"""Canary runs: production's own runs that are the full runs of a trial.

A trial opens a round in the ledger and waits. Every production run that begins asks for the
round's next free slot and trains that slot's arm; once each slot has its result, or the
candidate is lost, the round is closed and the trial continues. Slots keep the order in which they
were planned, so that both arms see the same weeks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from compilegate.domain import naming
from compilegate.domain.decision import RequestedFullRun
from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.flag_change import flag_of
from compilegate.domain.followers import HOLD
from compilegate.domain.production.attempts import longest_run_seconds
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import BegunRun, CanaryRound, CanarySlot, ProductionRun
from compilegate.domain.workload.model import BASELINE

Run = TypeVar("Run", BegunRun, ProductionRun)
# Why a run trains its arm: a trial asked for it.
CANARY = "canary"
# Why a round was closed: all its results are in; the candidate crashed or ran untreated; production
# trains another job by now, or nothing; its time is over; the trial was aborted.
COMPLETE, LOST, CHANGED, RETIRED = "complete", "lost", "changed", "retired"
OVERDUE, ABORTED = "overdue", "aborted"
# Why a trial that waits for a round continues; after any other end it has continued already.
REPORTED_ENDS = (COMPLETE, LOST, CHANGED, RETIRED)


@dataclass(frozen=True)
class Choice:
    """The arm of a run, and why; ``overrides`` are laid over the registered job.

    ``canary`` is the slot that it takes and ``seed`` the one that a trial asked for; ``tags`` are
    the job's beside those of every production job.
    """

    arm: str
    why: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    confirm: bool = False
    canary: CanarySlot | None = None
    seed: int | None = None
    decision_id: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


def requested_round(
    trial: str,
    number: int,
    runs: Sequence[RequestedFullRun],
    *,
    overrides: Mapping[str, Mapping[str, Any]],
    measured: TrainedJob,
    now: int,
    until: int,
    on: str = "",
) -> CanaryRound:
    """The trial's round ``number``, open from ``now`` to ``until``.

    ``runs`` are in the judge's order, which gives no arm a weekday of its own. ``overrides`` are
    what the flag would change for each arm, ``measured`` is the job that the trial measures. ``on``
    is the arm that is on.
    """
    return CanaryRound(
        trial=trial,
        round=number,
        runs=tuple(runs),
        arms=overrides,
        job=measured.digest,
        until=until,
        slot_seconds=round(longest_run_seconds(measured.workload)),
        hold=measured.workload.policy.hold_models,
        at=now,
        on=on,
    )


def open_rounds(history: WorkloadHistory, now: int) -> list[CanaryRound]:
    """The rounds that a trial still waits for at epoch second ``now``."""
    return [
        one
        for one in history.rounds
        if one.closed is None and now < one.until and one.trial not in history.ended_trials
    ]


def open_slot(history: WorkloadHistory, *, now: int, job: str) -> Choice | None:
    """What the next free slot asks of a run of ``job`` at ``now``; None trains as the flag says.

    None as well where ``job`` (the digest of what production trains today) is not what the
    trial measures: the candidate's changes were never tried on that; and where what they are tried
    on top of is off by now.
    """
    for opened in open_rounds(history, now):
        if opened.job != job or result_ending(opened, history) or not _stands(opened, history):
            continue
        ended = results(opened, history)
        # Those on their way to a result.
        taken = {
            slot.position
            for begun, slot in _with_slots(history.begun)
            if (slot.trial, slot.round) == (opened.trial, opened.round)
            and begun.run not in history.ended_runs
            and now - begun.at < opened.slot_seconds
        }
        for position, requested in enumerate(opened.runs):
            if position not in ended and position not in taken:
                is_held = opened.hold and requested.arm not in (BASELINE, opened.on)
                return Choice(
                    requested.arm,
                    CANARY,
                    opened.arms[requested.arm],
                    canary=CanarySlot(opened.trial, opened.round, position),
                    seed=requested.seed,
                    tags={
                        naming.TAG_TRIAL: opened.trial,
                        **({naming.TAG_RELEASE: HOLD} if is_held else {}),
                    },
                )
    return None


def results(canary: CanaryRound, history: WorkloadHistory) -> dict[int, ProductionRun]:
    """What the round's slots have come to, by their position: the first run that is evidence.

    A run without a result (capacity, stopped, another instance type) is none, nor is one
    that trained another arm after all.
    """
    first: dict[int, ProductionRun] = {}
    for run, slot in _with_slots(canary_runs(history, canary.trial)):
        is_slot = slot.round == canary.round and slot.position < len(canary.runs)
        if is_slot and run.arm == canary.runs[slot.position].arm:
            first.setdefault(slot.position, run)
    return first


def canary_runs(history: WorkloadHistory, trial: str) -> list[ProductionRun]:
    """Every production run that is evidence of this trial, in the order of time."""
    return [run for run, slot in _with_slots(history.runs) if run.counts and slot.trial == trial]


def held_runs(history: WorkloadHistory, trial: str) -> list[ProductionRun]:
    """Runs of the trial's candidates whose models were held back, with any outcome."""
    held = {one.round: one for one in history.rounds_of(trial) if one.hold}
    return [
        run
        for run, slot in _with_slots(history.runs)
        if slot.trial == trial and slot.round in held
        if run.arm not in (BASELINE, held[slot.round].on)
    ]


def _with_slots(runs: Iterable[Run]) -> Iterator[tuple[Run, CanarySlot]]:
    """The runs of trials, with the slot that each takes."""
    for run in runs:
        if run.canary is not None:
            yield run, run.canary


def result_ending(canary: CanaryRound, history: WorkloadHistory) -> str:
    """Why the round is over by its results, empty while it is not.

    A candidate that crashed, or ran without its change, is judged on that: production makes no
    more of it, and the baseline's slots that are left would change nothing.
    """
    ended = results(canary, history)
    candidates = [run for run in ended.values() if run.arm != BASELINE]
    if any(not run.finished or run.without_change for run in candidates):
        return LOST
    return COMPLETE if len(ended) == len(canary.runs) else ""


def round_ending(canary: CanaryRound, history: WorkloadHistory) -> str:
    """Why the round is over whatever run comes next, empty while it is not."""
    return result_ending(canary, history) or (RETIRED if history.is_retired else "")


def _stands(opened: CanaryRound, history: WorkloadHistory) -> bool:
    """Whether what the round's candidates are tried on top of is still on; in doubt it is not."""
    try:
        flag = flag_of(history.flags if opened.on else ())
    except UnreadableRecordError:
        return False
    return not opened.on or (flag.enabled and flag.candidate == opened.on)


def effect_of_run(
    run: ProductionRun, history: WorkloadHistory, job: str | None
) -> tuple[list[tuple[CanaryRound, str]], bool]:
    """The rounds that end with ``run``, which ``history`` has, and why each does.

    ``job`` is the digest of what the run trained (``TrainedJob.digest``), None where that is
    unknown. A run of another job than the trial measures, or after what the trial stands on was
    turned off, ends the round, as production will make no more. The flag beside them: the run's
    held model came after its round had ended without it.
    """
    over = []
    for round_ in history.rounds:
        is_other = job not in (None, round_.job) or not _stands(round_, history)
        moved_on = is_other and run.started_at > round_.at
        reason = round_.closed or round_ending(round_, history) or (CHANGED if moved_on else "")
        if reason and not round_.reported:
            over.append((round_, reason))
    # A model that comes too late is unproven; where the trial's verdict does, that comes later and
    # tags it again. A round that is complete may have ended with this very run.
    too_late = run.arm != BASELINE and any(
        one.hold and one.closed not in (None, COMPLETE) and run.arm != one.on
        for _, slot in _with_slots([run])
        for one in history.rounds_of(slot.trial)
        if one.round == slot.round
    )
    return over, too_late
