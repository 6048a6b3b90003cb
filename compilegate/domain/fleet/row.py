"""One row per workload: what its ledger says at a glance, derived from it alone.

A row holds nothing that the clock alone would change: what is due from some time on has that time,
and runs are counted by day. So the same ledger always gives the same row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compilegate.domain.codec import OMITTED
from compilegate.domain.fleet.month import Amount, Estimate
from compilegate.domain.production.history import DAY_SECONDS
from compilegate.domain.spreads import Measured

SCHEMA = 1
# What a fold makes of a ledger: the next number where the same ledger gives another row. Rows of an
# older one are built anew, those of a newer release are left alone.
FOLD = 1
WEEK_DAYS = 7

# What a trial does, as far as the ledger says.
NO_TRIAL, MEASURING, CANARY, APPROVAL, APPLYING = (
    "none", "measuring", "canary", "approval", "applying",
)  # fmt: skip
PHASES = (NO_TRIAL, MEASURING, CANARY, APPROVAL, APPLYING)
# What needs a person.
APPROVE, REVERTED, UNREADABLE, STALE = "approve", "reverted", "unreadable", "stale"
SLOWER_NOW, FAILED, NOT_READ = "slower_now", "failed", "not_read"
NO_BASELINE, LOCK_STAYS = "no_baseline", "lock_stays"
# The most urgent first.
NEEDS = (
    APPROVE, REVERTED, UNREADABLE, STALE, SLOWER_NOW, FAILED, NOT_READ, NO_BASELINE, LOCK_STAYS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RowFlag:
    """The flag by the ledger; ``since`` (epoch seconds) is when it took this state and candidate.

    ``version`` 0 and no ``since``: it was never changed. ``followed_at`` is when the latest run
    ended that read it since then, None where no run has.
    """

    state: str
    enabled: bool
    candidate: str | None = None
    since: int | None = None
    version: int = 0
    followed_at: int | None = None


@dataclass(frozen=True, slots=True)
class LastRun:
    """The production run that ended last, ``at`` in epoch seconds; ``ok``: to its end."""

    at: int
    arm: str
    ok: bool


@dataclass(frozen=True, slots=True)
class DayOfRuns:
    """Runs that ended on a day, counted from 1970 in UTC, and how many of them failed."""

    day: int
    runs: int
    failed: int


@dataclass(frozen=True, slots=True)
class Closed:
    """What was saved up to a month and with it (``2026-11``), which no later fold reads again.

    ``through`` is empty where no month is closed.
    """

    through: str = ""
    saved: Estimate = field(default_factory=Estimate)


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a person has to see to from epoch second ``since`` on; ``code`` of NEEDS."""

    code: str
    since: int


@dataclass(frozen=True, slots=True)
class Row:
    """One workload; times in epoch seconds, money in whole micro-dollars, None where unknown.

    ``registered``: production has known it, ``active``: it still trains it. ``flag`` is None where
    the ledger's entry of a change cannot be read. ``phase`` (of PHASES) is that of ``trial``, the
    one that is open. ``instance``, ``instances``, ``image``, ``family`` and ``runs_per_week`` are
    of the registered job. ``days`` are those up to the last run's that ``week`` counts.
    ``saved`` is what the candidates' runs have saved so far, ``baseline_at`` when the latest run of
    the baseline ended. ``trials`` is what all trials have spent. ``stale`` names what differs from
    what was proven, ``slower_at`` is since when a permanent promotion has lost its speed-up.
    ``open_runs`` are those that may have a job in progress, or had one until lately.
    ``unread`` counts entries of the ledger that cannot be read. ``entries`` is how many of each
    section of the ledger it covers, but for runs and their reviews: of them ``upto`` has the newest
    sort key, and the trial that holds the workload. ``spreads`` are what the latest
    trials have shown.
    """

    schema: int = field(default=SCHEMA, init=False)
    workload: str
    owner: str | None = None
    registered: bool = False
    active: bool = False
    flag: RowFlag | None = None
    phase: str = NO_TRIAL
    trial: str | None = None
    phase_since: int | None = None
    instance: str | None = None
    instances: int | None = None
    image: str | None = None
    family: str | None = None
    runs_per_week: float | None = None
    last_run: LastRun | None = None
    days: tuple[DayOfRuns, ...] = ()
    saved: Estimate = field(default_factory=Estimate)
    baseline_at: int | None = None
    trials: Amount = field(default_factory=Amount)
    needs: tuple[Need, ...] = ()
    stale: tuple[str, ...] = ()
    slower_at: int | None = None
    open_runs: tuple[str, ...] = ()
    unread: int = 0
    entries: Mapping[str, int] = field(default_factory=dict)
    upto: Mapping[str, str] = field(default_factory=dict)
    closed: Closed = field(default_factory=Closed)
    spreads: tuple[Measured, ...] = field(default=(), metadata=OMITTED)
    read_at: int = 0
    fold: int = FOLD

    @property
    def known_flag(self) -> RowFlag:
        """The flag; of one that cannot be read no more than that."""
        return self.flag or RowFlag(UNREADABLE, enabled=False)

    def week(self, now: float) -> tuple[int, int]:
        """Runs that ended today or on the six days before (UTC), and how many of them failed."""
        first = now // DAY_SECONDS - WEEK_DAYS + 1
        days = [one for one in self.days if one.day >= first]
        return sum(one.runs for one in days), sum(one.failed for one in days)

    def due(self, now: float) -> tuple[Need, ...]:
        """What needs a person at epoch second ``now``, the most urgent first."""
        return tuple(need for need in self.needs if need.since <= now)
