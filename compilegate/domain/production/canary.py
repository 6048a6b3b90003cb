"""Canary runs: production's own runs that are the full runs of a trial.

A trial opens a round in the ledger and waits. Every production run that begins asks for the
round's next free slot and trains that slot's arm; once each slot has its result, or the
candidate is lost, the round is closed and the trial continues. Slots keep the order in which they
were planned, so that both arms see the same weeks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import RequestedFullRun
from compilegate.domain.followers import HOLD
from compilegate.domain.production.attempts import longest_run_seconds
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import CanaryRound, CanarySlot, ProductionRun
from compilegate.domain.workload.model import BASELINE

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
) -> CanaryRound:
    """The trial's round ``number``, open from ``now`` to ``until``.

    ``runs`` are in the judge's order, which gives no arm a weekday of its own. ``overrides`` are
    what the flag would change for each arm, ``measured`` is the job that the trial measures.
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
    trial measures: the candidate's changes were never tried on that.
    """
    for opened in open_rounds(history, now):
        if opened.job != job or result_ending(opened, history):
            continue
        ended = results(opened, history)
        # Those on their way to a result.
        taken = {
            begun.canary.position
            for begun in history.begun
            if begun.canary is not None
            and (begun.canary.trial, begun.canary.round) == (opened.trial, opened.round)
            and begun.run not in history.ended_runs
            and now - begun.at < opened.slot_seconds
        }
        for position, requested in enumerate(opened.runs):
            if ended[position] is None and position not in taken:
                is_held = opened.hold and requested.arm != BASELINE
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


def results(canary: CanaryRound, history: WorkloadHistory) -> list[ProductionRun | None]:
    """What each of the round's slots has come to: its first run that is evidence, or None.

    A run without a result (capacity, stopped, another instance type) is none, nor is one
    that trained another arm after all.
    """
    first: dict[int, ProductionRun] = {}
    for run in canary_runs(history, canary.trial):
        slot = run.canary
        if slot is None or slot.round != canary.round or slot.position >= len(canary.runs):
            continue
        if run.arm == canary.runs[slot.position].arm:
            first.setdefault(slot.position, run)
    return [first.get(position) for position in range(len(canary.runs))]


def canary_runs(history: WorkloadHistory, trial: str) -> list[ProductionRun]:
    """Every production run that is evidence of this trial, in the order of time."""
    return [
        run
        for run in history.runs
        if run.counts and run.canary is not None and run.canary.trial == trial
    ]


def held_runs(history: WorkloadHistory, trial: str) -> list[ProductionRun]:
    """Runs of the trial's candidates whose models were held back, with any outcome."""
    held = {(trial, one.round) for one in history.rounds_of(trial) if one.hold}
    return [
        run
        for run in history.runs
        if run.arm != BASELINE
        and run.canary is not None
        and (run.canary.trial, run.canary.round) in held
    ]


def result_ending(canary: CanaryRound, history: WorkloadHistory) -> str:
    """Why the round is over by its results, empty while it is not.

    A candidate that crashed, or ran without its change, is judged on that: production makes no
    more of it, and the baseline's slots that are left would change nothing.
    """
    ended = results(canary, history)
    candidates = [run for run in ended if run is not None and run.arm != BASELINE]
    if any(not run.finished or run.without_change for run in candidates):
        return LOST
    return "" if None in ended else COMPLETE


def round_ending(canary: CanaryRound, history: WorkloadHistory) -> str:
    """Why the round is over whatever run comes next, empty while it is not."""
    return result_ending(canary, history) or (RETIRED if history.is_retired else "")


def effect_of_run(
    run: ProductionRun, history: WorkloadHistory, job: str | None
) -> tuple[list[tuple[CanaryRound, str]], bool]:
    """The rounds that end with ``run``, which ``history`` has, and why each does.

    ``job`` is the digest of what the run trained (``TrainedJob.digest``), None where that is
    unknown. A run of another job than the trial measures ends the round, as production will make
    no more. The flag beside them: the run's held model came after its round had ended without it.
    """
    over = []
    for round_ in history.rounds:
        moved_on = job not in (None, round_.job) and run.started_at > round_.at
        reason = round_.closed or round_ending(round_, history) or (CHANGED if moved_on else "")
        if reason and not round_.reported:
            over.append((round_, reason))
    # A model that comes too late is unproven; where the trial's verdict does, that comes later and
    # tags it again. A round that is complete may have ended with this very run.
    slot = run.canary
    too_late = (
        slot is not None
        and run.arm != BASELINE
        and any(
            one.hold and one.closed not in (None, COMPLETE)
            for one in history.rounds_of(slot.trial)
            if one.round == slot.round
        )
    )
    return over, too_late
