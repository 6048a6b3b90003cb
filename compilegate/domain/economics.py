"""Money before and after a trial, in USD; every formula stands in its function's docstring.

``speedup`` is a ratio of run times, baseline over candidate: 1.25 means 20 % less time.
An unknown figure is None, never 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

WEEKS_PER_YEAR = 52
DAYS_PER_YEAR = 365


# No run or trial costs as much; sums of less are whole numbers that documents take (outside.py).
MOST_USD = 1e9


def known_usd(usd: float | None) -> float | None:
    """An amount in USD; None where it is none that a run or a trial can have cost."""
    return usd if usd is not None and 0 <= usd < MOST_USD else None


def micro_usd(usd: float) -> int:
    """Whole micro-dollars, whose sums are exact in any order; of a half the even one."""
    return round(usd * 1_000_000)


class Range(NamedTuple):
    """A closed interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Saving:
    """What a measured speed-up is worth; ``payback_runs`` None when nothing is saved."""

    usd_per_run: float
    usd_per_year: float
    interval_usd_per_year: Range | None
    payback_runs: float | None


def annual_training_usd(usd_per_hour: float, run_hours: float, runs_per_week: float) -> float:
    """Price of the cluster per hour x hours of a run x runs per week x 52."""
    return usd_per_hour * run_hours * runs_per_week * WEEKS_PER_YEAR


def annual_saving_usd(
    annual_usd: float, run_hours: float, speedup: float, overhead_seconds: float
) -> float:
    """Annual spend x (1 - 1 / speed-up - overhead / run length), the share saved of every run.

    Never below 0: a compiler that does not pay stays off.
    """
    share = saved_share(speedup) - overhead_seconds / (run_hours * 3600)
    return annual_usd * max(share, 0.0)


def saved_share(speedup: float, price_ratio: float = 1.0) -> float:
    """Share of a run's price that is saved: 1 - price ratio / speed-up; negative = dearer."""
    return 1 - price_ratio / speedup


def amdahl_speedup(compute_share: float, compute_speedup: float) -> float:
    """Speed-up of the whole step when only its compute share gets faster (Amdahl 1967).

    1 / ((1 - f) + f / s) with f the share of a step spent computing, s its speed-up.
    """
    return 1 / ((1 - compute_share) + compute_share / compute_speedup)


def break_even_seconds(overhead_seconds: float, speedup: float) -> float | None:
    """Run length at which compiling pays: T = overhead / (1 - 1/S) = overhead x S / (S - 1).

    A compiled run takes overhead + T/S; it is shorter than T from this length on.
    None at a speed-up of 1 or below: no run is long enough.
    """
    return overhead_seconds * speedup / (speedup - 1) if speedup > 1 else None


@dataclass(frozen=True)
class AtLength:
    """What a run of ``seconds`` would gain; ``pays_from_seconds`` None: no run is long enough."""

    seconds: float
    speedup: float
    interval: tuple[float, float]
    pays_from_seconds: float | None


def at_length(
    seconds: float, steady: float, interval: tuple[float, float], overhead_seconds: float
) -> AtLength:
    """The speed-up of a run of another length: T / (overhead + T / S), S that of steady steps.

    The interval is that of S, mapped through the same formula.
    """

    def whole(speedup: float) -> float:
        return seconds / (overhead_seconds + seconds / speedup)

    return AtLength(
        seconds=seconds,
        speedup=whole(steady),
        interval=(whole(interval[0]), whole(interval[1])),
        pays_from_seconds=break_even_seconds(overhead_seconds, steady),
    )


def payback_days(trial: float, annual_saving: float) -> float | None:
    """Days of production until the saving has paid for the trial; None if nothing is saved."""
    return trial / (annual_saving / DAYS_PER_YEAR) if annual_saving > 0 else None


def saving_from_speedup(
    *,
    usd_per_run: float,
    runs_per_week: float,
    speedup: float,
    interval: Range | None,
    trial: float | None,
    price_ratio: float = 1.0,
) -> Saving:
    """Saving at a measured speed-up; ``usd_per_run`` is the baseline's.

    Per run: usd_per_run x (1 - price ratio / speed-up), ``price_ratio`` being the candidate's
    price per hour over the baseline's. Per year: x runs per week x 52. The interval is the
    speed-up's, mapped through the same formula. Payback: trial / saving per run.
    """
    per_run = usd_per_run * saved_share(speedup, price_ratio)
    runs = runs_per_week * WEEKS_PER_YEAR
    bounds = None
    if interval is not None and interval.low > 0 and math.isfinite(interval.high):
        bounds = Range(
            usd_per_run * saved_share(interval.low, price_ratio) * runs,
            usd_per_run * saved_share(interval.high, price_ratio) * runs,
        )
    return Saving(
        usd_per_run=per_run,
        usd_per_year=per_run * runs,
        interval_usd_per_year=bounds,
        payback_runs=trial / per_run if trial is not None and per_run > 0 else None,
    )
