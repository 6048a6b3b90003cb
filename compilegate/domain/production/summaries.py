"""Summaries of workloads' histories: one workload's week, and the figures of a day over all."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate

from compilegate.domain.flag_change import flag_of
from compilegate.domain.production.history import WorkloadHistory, promotions, standing_promotion
from compilegate.domain.production.savings import (
    RunSaving,
    Savings,
    booked_at,
    run_savings,
    saving_of,
    sum_of,
    total,
)
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import ProductionRun

FAILED = "failed"


@dataclass(frozen=True)
class TimeWindow:
    """From ``since`` up to ``until``, epoch seconds."""

    since: float
    until: float

    def holds(self, at: float) -> bool:
        """Whether a moment lies in it."""
        return self.since <= at < self.until


@dataclass(frozen=True)
class ExpectedSavings:
    """What trials expected: USD a run by trial, and runs of probation; None if unknown."""

    usd_per_run: Mapping[str, float | None] = field(default_factory=dict)
    probation_runs: int | None = None


@dataclass(frozen=True)
class ChangeOfFlag:
    """A change of the flag in that week, as the summary's figures have it; ``at`` in epoch s."""

    at: int
    action: str
    by: str


@dataclass(frozen=True)
class WorkloadWeek:
    """One workload; ``runs`` counts this week's by arm, ``savings`` are those of every promotion.

    ``changes`` are this week's of the flag. ``trial``, ``canary`` and ``approval`` name a trial
    that is open, that makes canary runs in production, that waits for a person.
    """

    workload: str
    owner: str | None
    state: str
    enabled: bool
    candidate: str | None = None
    runs: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    waited: int = 0
    changes: Sequence[ChangeOfFlag] = ()
    watched: int = 0
    probation_runs: int | None = None
    trial: str | None = None
    canary: str | None = None
    approval: str | None = None
    savings: Savings | None = None

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to report."""
        return not (self.runs or self.waited or self.changes or self.open)

    @property
    def open(self) -> bool:
        """Whether something is under way or waits."""
        return bool(self.trial or self.approval or self.state in ("probation", "stale"))


@dataclass(frozen=True)
class Fleet:
    """The workloads that production trains; ``unread`` are those whose records cannot be read."""

    stage: str
    window: TimeWindow
    summaries: Sequence[WorkloadWeek]
    unread: Sequence[str] = ()
    simulated: str | None = None


def workload_week(
    workload: str,
    history: WorkloadHistory,
    window: TimeWindow,
    *,
    owner: str | None = None,
    expected: ExpectedSavings | None = None,
) -> WorkloadWeek:
    """The week of one workload."""
    expected = expected or ExpectedSavings()
    flag, promotion = history.flag, standing_promotion(history.flags)
    ended = [run for run in history.runs if window.holds(run.ended_at)]
    # Those of this promotion: the latest has counted the runs that it is judged on.
    reviews = history.reviews_of(promotion.trial, since=promotion.at) if promotion else ()
    latest = max(reviews, key=lambda review: review.at, default=None)
    trial = next((one.trial for one in reversed(history.open_trials)), None)
    return WorkloadWeek(
        workload=workload,
        owner=owner,
        state=flag.state,
        enabled=flag.enabled,
        candidate=flag.candidate,
        runs=dict(Counter(run.arm for run in ended)),
        failed=sum(not run.finished for run in ended),
        waited=len({wait.run for wait in history.waits if window.holds(wait.at)}),
        changes=[
            ChangeOfFlag(version.at, version.action, version.by)
            for version in history.flags
            if window.holds(version.at)
        ],
        watched=latest.runs if latest else 0,
        probation_runs=expected.probation_runs,
        trial=trial,
        canary=trial if trial and history.open_rounds_of(trial) else None,
        approval=next((one.trial for one in history.open_approvals), None),
        savings=_savings(history.runs, promotions(history.flags), expected),
    )


def _savings(
    runs: Sequence[ProductionRun], turned_on: Sequence[FlagVersion], expected: ExpectedSavings
) -> Savings | None:
    """What every promotion has saved, each up to the next; one that has ended, too."""
    if not turned_on:
        return None
    starts = list(accumulate((version.at for version in turned_on), max))
    of_each: list[list[RunSaving]] = [[] for _ in turned_on]
    for saving in run_savings(runs, starts[0]):
        of_each[bisect_right(starts, booked_at(saving.run)) - 1].append(saving)
    return total([
        sum_of(own, expected.usd_per_run.get(str(version.trial)))
        for version, own in zip(turned_on, of_each, strict=True)
    ])  # fmt: skip


@dataclass(frozen=True)
class DayFigures:
    """One workload's day, or the sum of several; money in USD.

    ``decisions`` counts decisions by verdict, and trials that ``failed``. ``saved_usd`` is over
    runs whose price and whose baseline's price are known, and negative where runs cost more.
    ``flags_on`` is at the end of the day.
    """

    decisions: Counter[str] = field(default_factory=Counter)
    trial_usd: float = 0.0
    production_runs: int = 0
    failed_runs: int = 0
    waited_runs: int = 0
    production_usd: float = 0.0
    saved_usd: float = 0.0
    flags_on: int = 0

    def __add__(self, other: DayFigures) -> DayFigures:
        """The sum of both."""
        names = [one.name for one in fields(self)]
        return DayFigures(*(getattr(self, name) + getattr(other, name) for name in names))


def day_of(history: WorkloadHistory, *, since: float, until: float) -> DayFigures:
    """The figures of one workload between two times (epoch seconds), the first included."""
    today = TimeWindow(since, until).holds
    runs = [run for run in history.runs if run.ended_at < until]
    ended = [run for run in runs if run.ended_at >= since]
    decided = [one for one in history.decided if today(one.at)]
    failures = [one for one in history.failed if today(one.at)]
    spent = [*(one.spent_usd for one in decided), *(one.spent_usd for one in failures)]
    verdicts = [one.verdict for one in decided]
    verdicts += [str(one.verdict) for one in history.probation_ends if today(one.at)]
    verdicts += [FAILED for _ in failures]
    return DayFigures(
        decisions=Counter(verdicts),
        trial_usd=math.fsum(usd or 0.0 for usd in spent),
        production_runs=len(ended),
        failed_runs=sum(not run.finished for run in ended),
        waited_runs=len({wait.run for wait in history.waits if today(wait.at)}),
        production_usd=math.fsum(run.usd or 0.0 for run in ended),
        saved_usd=saving_of(runs, since, until).saved_usd or 0.0,
        flags_on=int(flag_of([one for one in history.flags if one.at < until]).enabled),
    )
