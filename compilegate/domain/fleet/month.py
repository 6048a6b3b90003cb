"""What a workload's trials and production runs came to in a month, in whole micro-dollars.

An entry of the ledger counts in the month, in UTC, in which it was written. So each counts once,
none arrives in a month that has long ended, and the months add up to the ledger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields
from datetime import UTC, datetime
from math import isqrt
from typing import Self

from compilegate.domain import utc
from compilegate.domain.decision import Verdict
from compilegate.domain.economics import micro_usd
from compilegate.domain.flag_change import flag_of
from compilegate.domain.followers import STALE
from compilegate.domain.optional import without_none
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.begin import CONFIRM, HOLDBACK, REFRESH
from compilegate.domain.production.ended_execution import TEAM_STARTED
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.ratio import NORMAL_QUANTILE
from compilegate.domain.production.savings import (
    OPEN_SECONDS,
    Savings,
    booked_at,
    forgone_savings,
    saving_of,
    sum_of,
)
from compilegate.domain.production.summaries import TimeWindow
from compilegate.domain.records.ledger import UnknownRecord
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.model import BASELINE

SCHEMA = 1
MONTH = re.compile(r"[1-9]\d{3}-(0[1-9]|1[0-2])")
# By then runs whose event was lost are recorded, and a saving has its neighbours in time.
CLOSES_AFTER = OPEN_SECONDS
# Why a run trains the baseline where a candidate is to be compared with it.
COMPARED = (REFRESH, CONFIRM, HOLDBACK, TEAM_STARTED)
# The error of a trial that was stopped: Step Functions' status, or what a drain gives.
STOPPED = ("ABORTED", "Drained")


@dataclass(frozen=True, slots=True)
class Amount:
    """Amounts of ledger entries: how many were summed, their sum, and how many have none."""

    entries: int = 0
    micro_usd: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, amounts: Sequence[float | None]) -> Self:
        """The sum of amounts in USD; None is one that is not known."""
        priced = list(map(micro_usd, without_none(amounts)))
        return cls(len(priced), sum(priced), len(amounts) - len(priced))

    @property
    def is_known(self) -> bool:
        """Whether the sum says something: of one amount, or that there was none."""
        return self.entries > 0 or self.unknown == 0

    @classmethod
    def total(cls, parts: Sequence[Amount]) -> Self:
        """The sum of sums."""
        return cls(*(sum(getattr(part, one.name) for part in parts) for one in fields(cls)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What runs saved, or would have saved, with its standard error.

    ``unknown`` are further runs of which it is not known.
    """

    runs: int = 0
    micro_usd: int = 0
    se_micro_usd: int = 0
    unknown: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the amount says something: of one run, or that there was none."""
        return self.runs > 0 or self.unknown == 0

    @property
    def interval_micro_usd(self) -> tuple[int, int]:
        """The 90 % interval."""
        half = round(NORMAL_QUANTILE * self.se_micro_usd)
        return self.micro_usd - half, self.micro_usd + half

    @classmethod
    def total(cls, parts: Sequence[Estimate]) -> Self:
        """The sum of independent estimates, whose variances add up."""
        return cls(
            runs=sum(part.runs for part in parts),
            micro_usd=sum(part.micro_usd for part in parts),
            se_micro_usd=isqrt(sum(part.se_micro_usd**2 for part in parts)),
            unknown=sum(part.unknown for part in parts),
        )


@dataclass(frozen=True)
class MonthFigures:
    """Money of one workload's month, or the sum of several.

    ``decided``, ``failed`` and ``stopped`` are what trials have spent, by how they ended.
    ``production`` is what production runs cost, ``saved`` what those of a candidate saved against
    the baseline. ``holdback`` is what baseline runs for a comparison with a candidate that was on
    would have saved; it is no part of ``saved``. ``unread`` counts entries that could not be read.
    """

    decided: Amount = Amount()
    failed: Amount = Amount()
    stopped: Amount = Amount()
    production: Amount = Amount()
    holdback: Estimate = Estimate()
    saved: Estimate = Estimate()
    unread: int = 0

    @property
    def spent(self) -> Amount:
        """What all trials have spent."""
        return Amount.total((self.decided, self.failed, self.stopped))

    @property
    def net(self) -> Estimate:
        """What was saved, less what trials have spent: of the runs and trials that are known."""
        saved, spent = self.saved, self.spent
        return Estimate(
            saved.runs + spent.entries,
            saved.micro_usd - spent.micro_usd,
            saved.se_micro_usd,
            saved.unknown + spent.unknown + self.unread,
        )

    @classmethod
    def total(cls, parts: Sequence[MonthFigures]) -> Self:
        """The sum of several workloads' months."""

        def amount(name: str) -> Amount:
            return Amount.total([getattr(part, name) for part in parts])

        return cls(
            decided=amount("decided"),
            failed=amount("failed"),
            stopped=amount("stopped"),
            production=amount("production"),
            holdback=Estimate.total([part.holdback for part in parts]),
            saved=Estimate.total([part.saved for part in parts]),
            unread=sum(part.unread for part in parts),
        )


@dataclass(frozen=True)
class Month:
    """One workload's month (``2026-11``), by the ledger as it was at ``read_at`` (epoch s)."""

    schema: int = field(default=SCHEMA, init=False)
    workload: str
    month: str
    owner: str | None
    read_at: int
    figures: MonthFigures

    @property
    def closes_at(self) -> int:
        """From when on (epoch s) nothing that is written changes it."""
        return closes_at(self.month)

    def replaces(self, kept: Month | None) -> bool:
        """Whether it is to be kept: not over one that was read after the close.

        One that is read later than this has the time of a clock that was ahead.
        """
        return kept is None or not self.closes_at <= kept.read_at <= self.read_at


def month_at(at: float) -> str:
    """The month, in UTC, of epoch seconds."""
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m}"


def window_of(month: str) -> TimeWindow:
    """A month from its first second up to the next one's; of years up to 9998."""
    year, number = map(int, month.split("-"))
    return TimeWindow(*utc.month_of(datetime(year, number, 1, tzinfo=UTC).timestamp()))


def closes_at(month: str) -> int:
    """When a month is closed, epoch seconds."""
    return int(window_of(month).until) + CLOSES_AFTER


def history_since(month: str) -> float:
    """From which start on (epoch s) a month takes runs: one may last so long, or be compared."""
    return window_of(month).since - RUN_SECONDS


def months_between(since: float, until: float) -> list[str]:
    """Every month from that of ``since`` to that of ``until`` (epoch seconds)."""
    months = [month_at(since)]
    while (end := window_of(months[-1]).until) <= until:
        months.append(month_at(end))
    return months


def open_months(now: float) -> list[str]:
    """The months that can still change: this one, and the last one until it is closed."""
    return months_between(now - CLOSES_AFTER, now)


def registered(history: WorkloadHistory, key: str, until: float = math.inf) -> str | None:
    """What the latest registration before epoch second ``until`` says under a key, if anything."""
    documents = [one.document or {} for one in history.registrations if one.at < until]
    value = documents[-1].get(key) if documents else None
    return value if isinstance(value, str) else None


def month_of(history: WorkloadHistory, workload: str, month: str, *, now: int) -> Month:
    """A month of one workload; ``history`` has every trial, and runs from ``history_since`` on.

    What was written after its close is no part of it, so that it is the same whenever it is read.
    """
    window, close = window_of(month), closes_at(month)
    decided, failed, stopped = spent_on_trials(history, window, close)
    unreadable = [one for one in history.records if isinstance(one, UnknownRecord)]
    held = forgone_savings(history.runs, [*_held_back(history, window)], astuple(window))
    figures = MonthFigures(
        decided,
        failed,
        stopped,
        production=Amount.of([run.usd for run in history.runs if window.holds(booked_at(run))]),
        holdback=_estimate(sum_of(held)),
        saved=_estimate(saving_of(history.runs, window.since, window.until)),
        unread=sum(window.holds(one.at or window.since) for one in unreadable),
    )
    return Month(workload, month, registered(history, "owner", close), now, figures)


def months_of(history: WorkloadHistory, workload: str, *, now: int, after: str = "") -> list[Month]:
    """The months of one workload to keep, up to this one: those ``after`` one, or all where empty.

    One that is open replaces what was kept of it before; one that is closed stays.
    """
    if not after:
        ended = [one.at for one in history.decided] + [one.at for one in history.failed]
        first = min([*ended, *map(booked_at, history.runs), now - CLOSES_AFTER])
    else:
        first = window_of(after).until
    return [month_of(history, workload, name, now=now) for name in months_between(first, now)]


def spent_on_trials(history: WorkloadHistory, window: TimeWindow, until: float) -> Iterator[Amount]:
    """What those decided, failed and stopped have spent, as of epoch second ``until``.

    A decision is not undone by a failure.
    """
    ended: dict[str, list[float | None]] = {"decided": [], "failed": [], "stopped": []}
    for trial in history.decided:
        if window.holds(trial.at):
            # No job is started for one that is not eligible.
            nothing = trial.spent_usd is None and trial.verdict == Verdict.INELIGIBLE
            ended["decided"].append(0.0 if nothing else trial.spent_usd)
    decided = {one.trial for one in history.decided if one.at < until}
    for failure in history.failed:
        if window.holds(failure.at) and failure.trial not in decided:
            ended["stopped" if failure.error in STOPPED else "failed"].append(failure.spent_usd)
    return map(Amount.of, ended.values())


def _held_back(history: WorkloadHistory, window: TimeWindow) -> Iterator[tuple[ProductionRun, str]]:
    """The baseline's runs made to be compared with a candidate that was on, and that candidate."""
    for run in history.runs:
        if run.arm == BASELINE and run.why in COMPARED and window.holds(booked_at(run)):
            flag = flag_of([one for one in history.readable_flags if one.at <= run.started_at])
            if flag.enabled and flag.candidate is not None and flag.state != STALE:
                yield run, flag.candidate


def _estimate(savings: Savings) -> Estimate:
    priced = savings.priced_runs
    return Estimate(priced, savings.micro_usd, savings.se_micro_usd, savings.runs - priced)
