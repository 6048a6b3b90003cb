"""Baseline runs beside a permanent promotion: which run is one, and how many there are.

Without baselines of today neither the saving nor its loss could be told from how the job grows.
A run is drawn by its id, so that the draw can be repeated, and depends on nothing else that a run
might depend on. Beside that, one is due every seven weeks, at a moment drawn from a whole week, so
that no day of the week is preferred: two are about eight weeks apart at most. Between any two that
are due the candidate has a run, also where a job runs more rarely than it is registered.
"""

from __future__ import annotations

import math

from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.followers import chance
from compilegate.domain.workload.model import Workload

WEEK_SECONDS = 7 * 86_400
EVERY_WEEKS = 7
# Below this saving a year the baseline runs would tell nothing that is worth their price.
LEAST_USD_PER_YEAR = 50.0
# Of a job that runs more rarely too few runs lie near a month to tell what they saved (ratio.py).
LEAST_RUNS_PER_WEEK = 0.5


def share_of(workload: Workload, usd_per_run: float | None) -> float:
    """The share of runs on the baseline; ``usd_per_run`` is what a run saves, None if unknown."""
    runs_per_week = workload.schedule.runs_per_week
    saved = math.inf if usd_per_run is None else usd_per_run
    if not _tells(workload) or saved * runs_per_week * WEEKS_PER_YEAR < LEAST_USD_PER_YEAR:
        return 0.0
    return round(max(workload.policy.holdback, _due_share(workload)), 4)


def holds_back(
    workload: Workload,
    share: float | None,
    *,
    run: str,
    at: float,
    last: float,
    last_on_baseline: bool,
) -> bool:
    """Whether the run that was due at epoch second ``at`` trains the baseline.

    ``share`` is the flag's, None of a flag that an earlier release has written; ``last`` is when
    the run before was due, ``last_on_baseline`` whether it trained the baseline.
    """
    if not _tells(workload) or share == 0:
        return False
    drawn = chance(workload.name, run) < workload.policy.holdback - _due_share(workload)
    return drawn or (not last_on_baseline and _latest_due(workload.name, at) > last)


def _tells(workload: Workload) -> bool:
    """Whether baseline runs are wanted, and tell anything."""
    is_often_enough = workload.schedule.runs_per_week >= LEAST_RUNS_PER_WEEK
    return workload.policy.holdback > 0 and is_often_enough


def _due_share(workload: Workload) -> float:
    return 1 / (EVERY_WEEKS * workload.schedule.runs_per_week)


def _latest_due(name: str, at: float) -> float:
    """When a baseline run was last due, up to ``at``."""
    period = math.floor(at / (EVERY_WEEKS * WEEK_SECONDS))
    turns = [
        (EVERY_WEEKS * one + chance(name, "due", str(one))) * WEEK_SECONDS
        for one in (period - 1, period)
    ]
    return max(turn for turn in turns if turn <= at)
