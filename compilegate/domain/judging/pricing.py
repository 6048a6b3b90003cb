"""Hours and price of runs and trials, as measured: hours x price of the whole cluster, USD."""

from __future__ import annotations

import math

from compilegate.domain.arithmetic import mean
from compilegate.domain.judging.evidence import Arm, Evidence, mean_or_none, walls
from compilegate.domain.judging.speed import Segments


def usd_per_run(arm: Arm, evidence: Evidence, segments: Segments) -> float | None:
    """Price of a production run of this arm, None where hours or price are unknown."""
    hours = full_run_hours(arm, evidence, segments)
    return None if hours is None or arm.usd_per_hour is None else hours * arm.usd_per_hour


def usd_per_1000_samples(arm: Arm, samples_per_second: float | None) -> float | None:
    """Price of training on 1,000 samples in steady state; None where rate or price is unknown."""
    if arm.usd_per_hour is None or not samples_per_second:
        return None
    return arm.usd_per_hour / 3600 / samples_per_second * 1000


def full_run_hours(arm: Arm, evidence: Evidence, segments: Segments) -> float | None:
    """Hours of a production run: measured on full runs, else extrapolated from the blocks."""
    timed = walls(arm.full_runs)
    if not timed and arm is evidence.baseline:
        timed = list(evidence.history_wall_seconds)
    if timed:
        return mean(timed) / 3600
    steady = [segment for segment in segments[arm.name].values() if segment]
    seconds = mean_or_none([s.full_run_seconds(arm.full_run_steps or 1) for s in steady])
    return None if seconds is None else seconds / 3600


def trial_usd(evidence: Evidence) -> float | None:
    """What the trial cost so far: what the bill says, else segments and extra full runs.

    Runs that production made anyway cost the trial nothing. None where a price is unknown or
    an extra run that finished was not timed; what a crashed one took is not known and not counted.
    """
    if evidence.plan.spent_usd is not None:
        return evidence.plan.spent_usd
    total = 0.0
    for arm in evidence.arms:
        extra = [run for run in arm.quality if run.mode == "shadow"]
        if arm.usd_per_hour is None or any(not r.wall_seconds for r in extra if r.finished):
            return None
        seconds = math.fsum(run.wall_seconds or 0.0 for run in extra)
        seconds += math.fsum(math.fsum(run.step_seconds) for run in arm.speed)
        total += seconds / 3600 * arm.usd_per_hour
    return total
