"""The figures of one day over all workloads, from their ledger entries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.flag_change import KIND as FLAG
from compilegate.domain.flag_change import flag_of
from compilegate.domain.production.runs import ProductionRun, production_runs
from compilegate.domain.production.savings import run_savings
from compilegate.domain.production.waiting import KIND as WAITING

Entry = Mapping[str, Any]
# Of a trial, and of the production runs after a promotion.
DECIDED = ("decision", "probation")
FAILED = "failed"


@dataclass(frozen=True)
class DayFigures:
    """One workload's day, or the sum of several; money in USD.

    ``decisions`` counts decisions by verdict, and trials that ``failed``. ``saved_usd`` is over
    runs whose price and whose baseline's price are known, and negative where runs cost more.
    ``flags_on`` is at the end of the day.
    """

    decisions: Mapping[str, int] = field(default_factory=dict)
    trial_usd: float = 0.0
    production_runs: int = 0
    failed_runs: int = 0
    waited_runs: int = 0
    production_usd: float = 0.0
    saved_usd: float = 0.0
    flags_on: int = 0

    def __add__(self, other: DayFigures) -> DayFigures:
        """The sum of both."""
        return DayFigures(
            decisions=dict(Counter(self.decisions) + Counter(other.decisions)),
            trial_usd=self.trial_usd + other.trial_usd,
            production_runs=self.production_runs + other.production_runs,
            failed_runs=self.failed_runs + other.failed_runs,
            waited_runs=self.waited_runs + other.waited_runs,
            production_usd=self.production_usd + other.production_usd,
            saved_usd=self.saved_usd + other.saved_usd,
            flags_on=self.flags_on + other.flags_on,
        )


def day_of(entries: Sequence[Entry], *, since: float, until: float) -> DayFigures:
    """The figures of one workload between two times (epoch seconds), the first included."""
    today = [entry for entry in entries if since <= entry.get("at", -math.inf) < until]
    runs = [run for run in production_runs(entries) if run.ended_at < until]
    ended = [run for run in runs if run.ended_at >= since]
    decided = [entry for entry in today if entry.get("kind") in DECIDED]
    failed = sum(entry.get("kind") == FAILED for entry in today)
    verdicts = Counter(str(entry["verdict"]) for entry in decided)
    changes = [entry for entry in entries if entry.get("kind") == FLAG and entry["at"] < until]
    return DayFigures(
        decisions=dict(verdicts + Counter({FAILED: failed})),
        trial_usd=math.fsum(entry.get("spent_usd") or 0.0 for entry in decided),
        production_runs=len(ended),
        failed_runs=sum(not run.finished for run in ended),
        waited_runs=len({entry["run"] for entry in today if entry.get("kind") == WAITING}),
        production_usd=math.fsum(run.usd or 0.0 for run in ended),
        saved_usd=_saved_usd(runs, since),
        flags_on=int(flag_of(changes).enabled),
    )


def _saved_usd(runs: Iterable[ProductionRun], since: float) -> float:
    candidates = run_savings(list(runs), since=since)
    return math.fsum(one.usd for one in candidates if one.usd is not None)
