"""Finds the steady state of one segment of step times, by the data and not by a fixed skip.

The warm-up ends where a window of steps has come down into the band that the second half
of the segment lives in (median and 1.4826 x median absolute deviation, the consistent
estimate of a normal spread: Rousseeuw and Croux 1993). Whatever the warm-up cost above
steady steps is overhead of the process (compilation most of all), paid once per run. Steps
far above the baseline's median are late events (recompilations); how often they recur over
a longer run is extrapolated as ln N / ln n, because new guards fail ever more rarely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from compilegate.domain.arithmetic import mean, median

WINDOW = 15
MIN_WARM_UP = 20
MIN_STEPS = 40
SHORTEST_STEP = 1e-9  # seconds; no clock resolves less, so less was not measured
BAND = 3 * 1.4826
WINSORIZED_SHARE = 0.02
SPIKE_RATIO = 10.0


@dataclass(frozen=True)
class Segment:
    """What one process measured; seconds. ``late_seconds`` is part of the overhead.

    ``lost_step_seconds`` is what rare slow steps (waiting for data, stragglers) add to the mean
    step, which the robust steady step leaves out.
    """

    warm_up_steps: int
    steady_step_seconds: float
    overhead_seconds: float
    late_seconds: float = 0.0
    lost_step_seconds: float = 0.0

    def full_run_seconds(self, steps: int, *, calm: bool = False) -> float:
        """Time of a run of ``steps`` steps by this segment's overhead and steady step.

        ``calm``: were the late events of this segment the only ones of the whole run.
        """
        seconds = self.overhead_seconds + steps * self.steady_step_seconds
        return seconds - self.late_seconds if calm else seconds


def analyse(
    step_seconds: Sequence[float],
    *,
    compile_seconds: float,
    baseline_median: float,
    full_run_steps: int,
) -> Segment | None:
    """The segment's steady state, or None when it is too short to have one.

    ``compile_seconds`` is what the job itself counted. It is part of the steps' own time
    where compilation happens inside a step, so the larger of both is the overhead.
    """
    n = len(step_seconds)
    usable = n >= MIN_STEPS and math.isfinite(math.fsum(step_seconds))
    if not usable or min(step_seconds) < SHORTEST_STEP:
        return None
    warm_up = _warm_up_steps(step_seconds)
    spike = SPIKE_RATIO * baseline_median
    tail = step_seconds[warm_up:]
    late_events = [x for x in tail if x > spike]
    calm = sorted(x for x in tail if x <= spike) if late_events else sorted(tail)
    if len(calm) < WINDOW:
        return None
    # Their mean with the outermost shares pulled in to what lies next to them.
    cut = int(len(calm) * WINSORIZED_SHARE)
    inner = calm[cut : len(calm) - cut]
    steady = mean([*inner, *[inner[0]] * cut, *[inner[-1]] * cut])
    recurrence = math.log(max(full_run_steps, 2)) / math.log(n)
    late = math.fsum(x - steady for x in late_events) * max(1.0, recurrence)
    early = math.fsum(step_seconds[:warm_up]) - warm_up * steady
    return Segment(
        warm_up_steps=warm_up,
        steady_step_seconds=steady,
        overhead_seconds=max(early, compile_seconds, 0.0) + late,
        late_seconds=late,
        lost_step_seconds=mean(calm) - steady,
    )


def _warm_up_steps(x: Sequence[float]) -> int:
    n = len(x)
    second_half = x[n // 2 :]
    middle = median(second_half)
    spread = median(abs(value - middle) for value in second_half)
    limit = middle + BAND * spread
    for start in range(MIN_WARM_UP, n // 2, 5):
        if median(x[start : start + WINDOW]) <= limit:
            return start
    return n // 2
