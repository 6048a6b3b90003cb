"""Whether a permanent promotion has lost its speed-up: a cumulative sum over the baseline's runs.

Each baseline run is compared with the candidate's runs around it (ratio.py), by the logarithm of
its wall clock. The speed-up is the lower end of the trial's interval: what the trial left open is
no loss. Summed is, for one that has fallen to half of its logarithm against one that has not,
Wald's log likelihood ratio (1945, Annals of Mathematical Statistics 16:117), from where it was
lowest (Page 1954, Biometrika 41:100):

    S_t = max(0, S_{t-1} + shift (ln(speed-up) - shift / 2 - d_t) / s_t^2)

where d_t is the logarithm of baseline / candidate, s_t its standard error and shift = ln(speed-up)
/ 2. Were the s_t known, exp(LIMIT) = 2,981 baseline runs would pass on average before a false alarm
(Lorden 1971, Annals of Mathematical Statistics 42:1897); benchmarks/README.md has the rates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compilegate.domain.optional import with_known
from compilegate.domain.production.ratio import BLOCK_SECONDS, Point, ratio_of
from compilegate.domain.production.savings import wall_seconds_of
from compilegate.domain.records.production import ProductionRun, SpeedSum
from compilegate.domain.workload.model import BASELINE

LIMIT = 8.0
# The candidate's runs that a baseline run is compared with, before it and after it. Those after it
# tell a job that has changed at that moment from a candidate that has. With more of them after it,
# an earlier review has compared it.
BEFORE, AFTER, MOST_AFTER = 8, 3, 5
NEAR_SECONDS = BLOCK_SECONDS / 2
# Walls differ by as much at least, however alike a few runs are.
LEAST_ERROR = 0.02


def speed_sum(
    before: SpeedSum | None,
    runs: Sequence[ProductionRun],
    candidate: str,
    speedup: float | None,
    *,
    now: int,
) -> SpeedSum | None:
    """The sum with the latest baseline run, once enough runs have followed it; None without any.

    ``runs`` are in the order of time; ``speedup`` is the lower end of what the trial measured, None
    where it did not measure any.
    """
    walls = sound_runs(runs, candidate)
    near = _near_the_latest(walls)
    ratio = ratio_of([point for _, point in near])
    latest = next((run for run, point in near if point.is_baseline), "")
    is_counted = latest <= (before.run if before else "")
    speedup = speedup or 1.0  # of none that was measured none is lost
    if is_counted or ratio is None or speedup <= 1:
        return before
    shift, error = math.log(speedup) / 2, max(ratio.se, LEAST_ERROR)
    fallen = shift * (math.log(speedup) - shift / 2 - ratio.log) / error**2
    total = max(0.0, (before.total if before else 0.0) + fallen)
    since = before.lost_at if before and before.lost_at is not None else now
    return SpeedSum(total, latest, since if total > LIMIT else None)


def sound_runs(runs: Sequence[ProductionRun], candidate: str) -> list[tuple[str, Point]]:
    """Runs of either arm that trained to their end, as evidence and on the clock.

    Also those that compiled what they were to restore: where no run restores it, the time is lost.
    """
    sound = [
        run for run in runs if run.arm in (BASELINE, candidate) and run.counts and run.finished
    ]
    return [
        (run.run, Point(run.started_at, math.log(wall), run.arm == BASELINE))
        for run, wall in with_known(sound, wall_seconds_of)
    ]


def _near_the_latest(walls: Sequence[tuple[str, Point]]) -> list[tuple[str, Point]]:
    """The latest baseline run among the candidate's beside it; empty while too few follow it."""
    baselines = (at for at, (_, point) in enumerate(walls) if point.is_baseline)
    place = max(baselines, default=len(walls))  # without any, none follows it
    if not AFTER <= len(walls) - 1 - place <= MOST_AFTER:
        return []
    middle = walls[place]
    earlier = [one for one in walls[:place] if not one[1].is_baseline][-BEFORE:]
    beside = [*earlier, middle, *walls[place + 1 :][:AFTER]]
    return [one for one in beside if abs(one[1].at - middle[1].at) <= NEAR_SECONDS]
