"""The figures of one day over all workloads, from their histories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compilegate.domain.flag_change import flag_of
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.savings import run_savings
from compilegate.domain.records.runs import ProductionRun

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


def day_of(history: WorkloadHistory, *, since: float, until: float) -> DayFigures:
    """The figures of one workload between two times (epoch seconds), the first included."""

    def today(at: float) -> bool:
        return since <= at < until

    runs = [run for run in history.runs if run.ended_at < until]
    ended = [run for run in runs if run.ended_at >= since]
    decided = [one for one in history.decided if today(one.at)]
    verdicts = [one.verdict for one in decided]
    verdicts += [str(one.verdict) for one in history.probation_ends if today(one.at)]
    verdicts += [FAILED for one in history.failed if today(one.at)]
    return DayFigures(
        decisions=dict(Counter(verdicts)),
        trial_usd=math.fsum(one.spent_usd or 0.0 for one in decided),
        production_runs=len(ended),
        failed_runs=sum(not run.finished for run in ended),
        waited_runs=len({wait.run for wait in history.waits if today(wait.at)}),
        production_usd=math.fsum(run.usd or 0.0 for run in ended),
        saved_usd=_saved_usd(runs, since),
        flags_on=int(flag_of([one for one in history.flags if one.at < until]).enabled),
    )


def _saved_usd(runs: Iterable[ProductionRun], since: float) -> float:
    candidates = run_savings(list(runs), since=since)
    return math.fsum(one.usd for one in candidates if one.usd is not None)
