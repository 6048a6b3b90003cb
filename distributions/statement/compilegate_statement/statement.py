"""A month's statement for finance: the money of each workload, of each owner, of all.

Its sums add the whole micro-dollars of the workloads' months (month.py), so that they are the
ledger's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fleet.listing import check_known
from compilegate.domain.fleet.month import (
    MONTH,
    Amount,
    Estimate,
    Month,
    MonthFigures,
    closes_at,
    month_at,
)
from compilegate.domain.optional import without_none

SCHEMA = 1
FINAL, PROVISIONAL, UNREAD = "final", "provisional", "unread"


def check_month(month: str, now: float) -> None:
    """Raises InvalidInputError for what is no month, and for one that has not begun."""
    newest = month_at(now)
    if not MONTH.fullmatch(month):
        raise InvalidInputError(
            "is not a month", field="--month", value=month,
            fix=f"write the year and the month, for example {newest}",
        )  # fmt: skip
    if month > newest:
        raise InvalidInputError(
            "has not begun", field="--month", value=month,
            fix=f"the newest month, in UTC, is {newest}",
        )  # fmt: skip


def of_owner(months: Sequence[Month], owner: str, others: Iterable[str | None]) -> list[Month]:
    """The months of an owner's workloads, of those without one where ``owner`` is empty.

    Raises InvalidInputError for an owner of none; ``others`` are those of workloads that may have
    no month here.
    """
    owners = set(without_none([*(month.owner for month in months), *others]))
    check_known("--owner", filter(None, [owner]), sorted(owners), "owns no workload")
    return [one for one in months if (one.owner or "") == owner]


@dataclass(frozen=True)
class Statement:
    """Months (all of ``month``) of one owner's workloads, or of all, as of ``read_at`` (epoch s).

    ``unread`` are workloads whose ledger could not be read.
    """

    stage: str
    month: str
    owner: str | None
    read_at: int
    months: Sequence[Month]
    unread: Sequence[str] = ()
    simulated: str | None = None

    def document(self) -> dict[str, Any]:
        """The statement for programs; ``idle`` counts the workloads without any entry."""
        busy = [one for one in self.months if one.figures != MonthFigures()]
        by_owner: dict[str | None, list[Month]] = defaultdict(list)
        for month in sorted(busy, key=lambda one: (one.owner or "", one.workload)):
            by_owner[month.owner].append(month)
        closes = closes_at(self.month)
        return {
            "schema": SCHEMA,
            "stage": self.stage,
            "month": self.month,
            "owner": self.owner,
            "state": FINAL if self.read_at >= closes else PROVISIONAL,
            "closes_at": closes,
            "read_at": self.read_at,
            "total": {"workloads": len(busy), **_line(busy)},
            "owners": [
                {"owner": owner, "workloads": len(own), **_line(own)}
                for owner, own in by_owner.items()
            ],
            "workloads": [
                {"workload": one.workload, "owner": owner, **_line([one])}
                for owner, own in by_owner.items()
                for one in own
            ],
            "idle": len(self.months) - len(busy),
            "unread": sorted(self.unread),
            "simulated": self.simulated,
        }


def _line(months: Sequence[Month]) -> dict[str, Any]:
    """The figures of one workload or the sums of several."""
    figures = MonthFigures.total([one.figures for one in months])
    return {
        "entries": figures.spent.entries + figures.production.entries,
        "unread_entries": figures.unread,
        "decided": _amount(figures.decided),
        "failed": _amount(figures.failed),
        "stopped": _amount(figures.stopped),
        "spent": _amount(figures.spent),
        "holdback": {"runs": figures.holdback.runs, **_range(figures.holdback)},
        "saved": {"runs": figures.saved.runs, **_range(figures.saved)},
        "net": _range(figures.net),
        "production": _amount(figures.production),
    }


def _amount(amount: Amount) -> dict[str, int | None]:
    return {**write(amount), **({} if amount.is_known else {"micro_usd": None})}


def _range(estimate: Estimate) -> dict[str, int | None]:
    ends = (estimate.micro_usd, *estimate.interval_micro_usd)
    micro_usd, low, high = ends if estimate.is_known else (None, None, None)
    return {
        "micro_usd": micro_usd,
        "low_micro_usd": low,
        "high_micro_usd": high,
        "unknown": estimate.unknown,
    }
