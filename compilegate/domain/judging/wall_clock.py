"""The wall clock of whole jobs: do they confirm the speed-up that the blocks have shown?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compilegate.domain.arithmetic import mean
from compilegate.domain.judging.evidence import Arm, Evidence, finished, walls
from compilegate.domain.judging.noninferiority import still_valid
from compilegate.domain.judging.speed import log_price_ratio

# Spread of ln(wall clock) over nodes, assumed where a few runs cannot tell it (8 % of full
# runs' time between equal machines, Sinha et al. 2022).
WALL_SD = 0.08


@dataclass(frozen=True)
class WallClock:
    """Whole jobs, baseline over candidate; ``ratio`` None while a side was not timed."""

    ratio: float | None
    doubtful: bool
    disproved: bool


def wall_clock(candidate: Arm, evidence: Evidence) -> WallClock:
    """Whether whole jobs bear out the gate: mean T_B / mean T_C against ``reject_speedup``.

    ``doubtful`` means below it or unmeasured, ``disproved`` below it beyond node noise. On a
    cluster of another price ``reject_speedup`` is asked of dollars per run, and a cheaper one
    must not take longer beyond noise.
    """
    ours, theirs = walls(candidate.quality), baseline_walls(evidence)
    if not theirs or len(ours) < len(finished(candidate.quality)) or not ours:
        return WallClock(None, doubtful=True, disproved=False)
    ratio, cost = mean(theirs) / mean(ours), log_price_ratio(candidate, evidence)
    bar = math.log(evidence.policy.reject_speedup) + cost
    best = math.log(ratio) + 3 * WALL_SD * math.sqrt(1 / len(ours) + 1 / len(theirs))
    disproved = best < bar or (cost < 0 and best < 0)
    return WallClock(ratio, math.log(ratio) < bar or disproved, disproved)


def baseline_walls(evidence: Evidence) -> list[float]:
    """Seconds of the baseline's whole jobs; past ones only while today's do not contradict them."""
    today, past = walls(evidence.baseline.quality), evidence.history_wall_seconds
    logs = [[math.log(wall) for wall in found] for found in (past, today)]
    return [*(past if still_valid(logs[0], logs[1], WALL_SD**2) else ()), *today]
