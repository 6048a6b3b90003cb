"""One workload's week, from its ledger: what ran, what changed, what is open, what was saved."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.approval import approvals
from compilegate.domain.flag_change import flag_entries, flag_of
from compilegate.domain.production.canary import CLOSED, OPENED
from compilegate.domain.production.promotion import Promotion, promotions, standing_promotion
from compilegate.domain.production.runs import ProductionRun, production_runs
from compilegate.domain.production.savings import Savings, savings_so_far, total
from compilegate.domain.production.waiting import KIND as WAITING

Entry = Mapping[str, Any]
# What ends a trial, and what a look at production leaves.
STARTED, TRIAL_ENDS, WATCH = "started", ("decision", "failed"), "watch"


@dataclass(frozen=True)
class Span:
    """From ``since`` up to ``until``, epoch seconds."""

    since: float
    until: float

    def holds(self, at: float) -> bool:
        """Whether a moment lies in it."""
        return self.since <= at < self.until


@dataclass(frozen=True)
class Promised:
    """What trials expected: USD a run by trial, and runs of probation; None if unknown."""

    usd_per_run: Mapping[str, float | None] = field(default_factory=dict)
    probation_runs: int | None = None


@dataclass(frozen=True)
class Week:
    """One workload; ``runs`` counts this week's by arm, ``savings`` are those of every promotion.

    ``changes`` are this week's of the flag, ``{at, action, by}`` each. ``trial``, ``canary`` and
    ``approval`` name a trial that is open, that production carries, that waits for a person.
    """

    workload: str
    owner: str | None
    state: str
    enabled: bool
    candidate: str | None = None
    runs: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    waited: int = 0
    changes: Sequence[Mapping[str, Any]] = ()
    watched: int = 0
    probation_runs: int | None = None
    trial: str | None = None
    canary: str | None = None
    approval: str | None = None
    savings: Savings | None = None

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.runs or self.waited or self.changes or self.open)

    @property
    def open(self) -> bool:
        """Whether something is under way or waits."""
        return bool(self.trial or self.approval or self.state in ("probation", "stale"))


def promoting_trials(entries: Sequence[Entry]) -> list[str]:
    """The trials whose candidates were turned on, which say what to expect; oldest first."""
    return list(dict.fromkeys(str(one["trial"]) for one in promotions(flag_entries(entries))))


def week_of(
    workload: str,
    entries: Sequence[Entry],
    span: Span,
    *,
    owner: str | None = None,
    promised: Promised | None = None,
) -> Week:
    """Read the ledger entries of one workload, in any order."""
    history, runs, told = flag_entries(entries), production_runs(entries), promised or Promised()
    flag, promotion = flag_of(history), standing_promotion(history)
    this_week = [run for run in runs if span.holds(run.ended_at)]
    trial = _open_trial(entries)
    return Week(
        workload=workload,
        owner=owner,
        state=flag.state,
        enabled=flag.enabled,
        candidate=flag.candidate,
        runs=dict(Counter(run.arm for run in this_week)),
        failed=sum(not run.finished for run in this_week),
        waited=_waited(entries, span),
        changes=[
            {key: entry[key] for key in ("at", "action", "by")}
            for entry in history
            if span.holds(entry["at"])
        ],
        watched=_watched(entries, promotion),
        probation_runs=told.probation_runs,
        trial=trial,
        canary=trial if trial is not None and _carried(entries, trial) else None,
        approval=next((one.trial for one in approvals(entries) if one.answer is None), None),
        savings=_savings(runs, promotions(history), told),
    )


def _savings(
    runs: Sequence[ProductionRun], turned_on: Sequence[Entry], told: Promised
) -> Savings | None:
    """What every promotion has saved, each up to the next; one that has ended, too."""
    if not turned_on:
        return None
    ends = [int(entry["at"]) for entry in turned_on[1:]] + [math.inf]
    return total([
        savings_so_far(
            [run for run in runs if run.ended_at < end],
            usd_per_run=told.usd_per_run.get(str(entry["trial"])),
            since=int(entry["at"]),
        )
        for entry, end in zip(turned_on, ends, strict=True)
    ])  # fmt: skip


def _waited(entries: Iterable[Entry], span: Span) -> int:
    """Runs of this week that found no capacity at first."""
    waits = [entry for entry in entries if entry.get("kind") == WAITING]
    return len({entry["run"] for entry in waits if span.holds(entry["at"])})


def _watched(entries: Iterable[Entry], promotion: Promotion | None) -> int:
    """Runs that the latest look at this promotion has counted."""
    if promotion is None:
        return 0
    looks = [
        entry
        for entry in entries
        if entry.get("kind") == WATCH
        and entry["trial"] == promotion.trial
        and entry["at"] >= promotion.at
    ]
    latest = max(looks, key=lambda entry: entry["at"], default=None)
    return int(latest["runs"]) if latest else 0


def _open_trial(entries: Sequence[Entry]) -> str | None:
    """The latest trial that has begun and not ended."""
    ended = {entry.get("trial") for entry in entries if entry.get("kind") in TRIAL_ENDS}
    begun = [entry for entry in entries if entry.get("kind") == STARTED]
    # The entry names the execution, which is named after workload and trial.
    trials = [(entry["at"], str(entry["execution"]).rpartition("-")[2]) for entry in begun]
    still = [(at, trial) for at, trial in trials if trial not in ended]
    return max(still)[1] if still else None


def _carried(entries: Iterable[Entry], trial: str) -> bool:
    """Whether production carries a round of the trial now."""
    rounds: dict[str, set[Any]] = {OPENED: set(), CLOSED: set()}
    for entry in entries:
        if entry.get("kind") in rounds and entry.get("trial") == trial:
            rounds[entry["kind"]].add(entry.get("round"))
    return bool(rounds[OPENED] - rounds[CLOSED])
