"""Canary runs: production's own runs that carry the full runs of a trial.

A trial opens a round in the ledger and waits. Every production run that begins asks for the
round's next free place and trains that place's arm; once each place has its result, or the
candidate is lost, the round is closed and the trial goes on. Places keep the order in which they
were planned, so that both arms see the same weeks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.production.runs import CanarySlot, ProductionRun, production_runs
from compilegate.domain.workload.model import BASELINE, Workload

# Kinds of ledger entries: a round is opened, gets a token for every wait on it, is closed with the
# reason, and the waiting trial has been told.
OPENED, TOKEN, CLOSED, TOLD = "canary_opened", "canary_token", "canary_closed", "canary_told"
# Why a round was closed: all its results are in; the candidate crashed or ran untreated; production
# trains another job by now, or nothing; its time is over; the trial was given up.
COMPLETE, LOST, CHANGED, RETIRED = "complete", "lost", "changed", "retired"
OVERDUE, ABORTED = "overdue", "aborted"
# Entries that end a trial, whatever became of its rounds.
TRIAL_ENDS = ("decision", "failed")
HOLD, RELEASED, REJECTED = "hold", "released", "rejected"

Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Wanted:
    """One full run that the judge asked for."""

    arm: str
    seed: int


@dataclass(frozen=True)
class CanaryRound:
    """One round as the ledger has it; times in epoch seconds.

    ``arms`` are the overrides of each arm as a flag would hold them, the baseline's empty. ``job``
    is the digest of what the trial measures (``job_digest``). After ``until`` nobody waits for it;
    a place whose run began ``slot_seconds`` ago without a result is free again. ``hold`` says
    whether candidate models wait for the verdict. ``closed`` is the reason, None while it is open.
    """

    trial: str
    round: int
    runs: tuple[Wanted, ...]
    arms: Mapping[str, Mapping[str, Any]]
    job: str
    until: int
    slot_seconds: int
    hold: bool
    at: int = 0
    closed: str | None = None
    told: bool = False
    tokens: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Sort key of its first entry."""
        return ledger_keys.canary_entry(self.trial, self.round)

    def to_entry(self) -> dict[str, Any]:
        """The entry that opens it."""
        own = asdict(self)
        for added_later in ("closed", "told", "tokens"):
            del own[added_later]
        return {"kind": OPENED, **own}

    def slot(self, position: int) -> CanarySlot:
        """The place of one of its runs."""
        return CanarySlot(self.trial, self.round, position)


@dataclass(frozen=True)
class OpenSlot:
    """A place that the next production run takes: which arm it trains, and with what."""

    slot: CanarySlot
    arm: str
    seed: int
    overrides: Mapping[str, Any]
    hold: bool

    @property
    def tags(self) -> dict[str, str]:
        """What its job carries beside the tags of every production job."""
        held = {naming.TAG_RELEASE: HOLD} if self.hold and self.arm != BASELINE else {}
        return {naming.TAG_TRIAL: self.slot.trial, **held}


@dataclass
class _Found:
    opened: Mapping[str, Any]
    closed: str | None = None
    told: bool = False
    tokens: list[str] = field(default_factory=list)


def job_of(workload: Workload) -> dict[str, Any]:
    """What a job trains, by dotted names: nothing of policy, quality and schedule.

    Nor other machines that production may fall back to, as runs on those are no evidence.
    """
    document = workload.to_dict()
    return {
        f"{section}.{key}": value
        for section in ("framework", "training")
        for key, value in document[section].items()
        if key != "fallback_instances"
    }


def job_digest(workload: Workload, code: str) -> str:
    """One text for one job: what ``job_of`` says and the source."""
    told = json.dumps([job_of(workload), code], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def in_turn(runs: Sequence[Wanted], rounds_before: int) -> tuple[Wanted, ...]:
    """The runs as planned, turned round in every second round: A B, B A, A B …

    Otherwise each arm would keep its own weekday where production runs twice a week, and a steady
    drift would always fall on the same arm.
    """
    return tuple(reversed(runs)) if rounds_before % 2 else tuple(runs)


def canary_rounds(
    entries: Iterable[Mapping[str, Any]], trial: str | None = None
) -> list[CanaryRound]:
    """Every round, or every round of one trial, oldest first."""
    found: dict[tuple[str, int], _Found] = {}
    later = []
    for entry in entries:
        kind = entry.get("kind")
        if kind == OPENED and trial in (None, entry["trial"]):
            found[str(entry["trial"]), int(entry["round"])] = _Found(entry)
        elif kind in (TOKEN, CLOSED, TOLD):
            later.append(entry)
    for entry in sorted(later, key=lambda entry: int(entry.get("number", 0))):
        own = found.get((str(entry["trial"]), int(entry["round"])))
        if own is not None:
            _add(own, entry)
    return [_read(found[key]) for key in sorted(found)]


def _add(found: _Found, entry: Mapping[str, Any]) -> None:
    if entry["kind"] == TOKEN:
        found.tokens.append(str(entry["token"]))
    elif entry["kind"] == CLOSED:
        found.closed = str(entry["reason"])
    else:
        found.told = True


def _read(found: _Found) -> CanaryRound:
    entry = found.opened
    return CanaryRound(
        trial=str(entry["trial"]),
        round=int(entry["round"]),
        runs=tuple(Wanted(str(run["arm"]), int(run["seed"])) for run in entry["runs"]),
        arms=entry["arms"],
        job=str(entry["job"]),
        until=int(entry["until"]),
        slot_seconds=int(entry["slot_seconds"]),
        hold=entry["hold"] is not False,
        at=int(entry["at"]),
        closed=found.closed,
        told=found.told,
        tokens=tuple(found.tokens),
    )


def open_rounds(entries: Entries, now: int) -> list[CanaryRound]:
    """The rounds that a trial still waits for at epoch second ``now``."""
    over = {entry.get("trial") for entry in entries if entry.get("kind") in TRIAL_ENDS}
    return [
        found
        for found in canary_rounds(entries)
        if found.closed is None and now < found.until and found.trial not in over
    ]


def open_slot(entries: Entries, *, now: int, job: str) -> OpenSlot | None:
    """The place that a production run of ``job`` takes at ``now``; None trains what the flag says.

    None as well where ``job`` (``job_digest`` of what production trains today) is not what the
    trial measures: the candidate's changes were never tried on that.
    """
    for found in open_rounds(entries, now):
        if found.job != job:
            continue
        taken = _taken(found, entries, now)
        if ending(found, entries) is not None:
            continue
        for position, wanted in enumerate(found.runs):
            if position not in taken:
                return OpenSlot(
                    slot=found.slot(position),
                    arm=wanted.arm,
                    seed=wanted.seed,
                    overrides=found.arms[wanted.arm],
                    hold=found.hold,
                )
    return None


def _taken(found: CanaryRound, entries: Entries, now: int) -> set[int]:
    """Positions that have a result, or a run on its way to one."""
    done = {position for position, run in enumerate(results(found, entries)) if run is not None}
    ended = {run.run for run in production_runs(entries)}
    for entry in entries:
        slot = entry.get("canary")
        if entry.get("kind") != "run_begun" or not slot or entry["run"] in ended:
            continue
        recent = now - int(entry["at"]) < found.slot_seconds
        if recent and (slot["trial"], slot["round"]) == (found.trial, found.round):
            done.add(int(slot["position"]))
    return done


def results(found: CanaryRound, entries: Entries) -> list[ProductionRun | None]:
    """What each of the round's places has come to: its first run that is evidence, or None.

    A run that could not be had (capacity, stopped, another instance type) is none, nor is one
    that trained another arm after all.
    """
    first: dict[int, ProductionRun] = {}
    for run in carried_runs(entries, found.trial):
        slot = run.canary
        if slot is None or slot.round != found.round or slot.position >= len(found.runs):
            continue
        if run.arm == found.runs[slot.position].arm:
            first.setdefault(slot.position, run)
    return [first.get(position) for position in range(len(found.runs))]


def carried_runs(entries: Entries, trial: str) -> list[ProductionRun]:
    """Every production run that is evidence of this trial, in the order of time."""
    return [
        run
        for run in production_runs(entries)
        if run.counts and run.canary is not None and run.canary.trial == trial
    ]


def held_runs(entries: Entries, trial: str) -> list[ProductionRun]:
    """Runs of the trial's candidates whose models were held back, whatever came of them."""
    held = {found.round for found in canary_rounds(entries, trial) if found.hold}
    return [
        run
        for run in production_runs(entries)
        if run.arm != BASELINE
        and run.canary is not None
        and (run.canary.trial, run.canary.round in held) == (trial, True)
    ]


def ending(found: CanaryRound, entries: Entries) -> str | None:
    """Why the round is over by its results, None while it is not.

    A candidate that crashed, or ran without its change, is judged on that: production carries no
    more of it, and the baseline's places that are left would change nothing.
    """
    ended = results(found, entries)
    candidates = [run for run in ended if run is not None and run.arm != BASELINE]
    if any(not run.finished or run.result.get("applied") is False for run in candidates):
        return LOST
    return None if None in ended else COMPLETE
