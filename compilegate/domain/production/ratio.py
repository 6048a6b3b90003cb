"""How much more the baseline's runs come to than a candidate's, from runs near each other in time.

Runs of both arms are cut, in the order of time, into blocks of neighbours. In a block both follow
one straight line in the logarithm, because data and prices move both alike; the baseline's stands
above the candidate's by what that saves, in all blocks by the same. So growth cancels, and a step
of the price or of the data disturbs the block that it falls into alone.

The difference is that of ordinary least squares with a level and a slope for each block: by the
theorem of Frisch and Waugh (1933, Econometrica 1:387) and Lovell (1963, Journal of the American
Statistical Association 58:993) the regression of what is left of the logarithms without each
block's line on what is left of the arm. Where runs of an arm come in a burst long before the
other's, a line follows the arm itself and leaves nothing of it: then there is no ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compilegate.domain.arithmetic import mean
from compilegate.domain.judging.student import quantile

# Few enough that a line follows how a job grows, many enough that it costs few of them.
BLOCK_RUNS = 12
BLOCK_SECONDS = 8 * 7 * 86_400
# Lines have to leave this share of how the arms differ within blocks (their squares). The inverse
# is the variance inflation factor (Marquardt 1970, Technometrics 12:591), here 20 at most.
LEAST_LEFT = 0.05
# No compiler makes a job ten times as cheap or as dear; an error as large tells nothing.
MOST_LOG = math.log(10)
# A two-sided interval of 90 %.
UPPER = 0.95
NORMAL_QUANTILE = 1.6448536269514722


@dataclass(frozen=True)
class Point:
    """A run: when it started (epoch s), the logarithm of what it came to, and of which arm."""

    at: float
    log: float
    is_baseline: bool


@dataclass(frozen=True)
class Ratio:
    """The logarithm of baseline / candidate, and its standard error.

    The error is that of a normal distribution with the same 90 % interval: where few runs say how
    much runs vary it is larger than theirs, by Student's t.
    """

    log: float
    se: float


def ratio_of(points: Sequence[Point]) -> Ratio | None:
    """By points in the order of time; None where they do not tell arms from growth and chance."""
    logs, arms, freedom, apart = [], [], -1, 0.0
    for block in _blocks(points):
        lines, left = _without_line(block)
        logs += left[0]
        arms += left[1]
        freedom += len(block) - lines
        baselines = sum(point.is_baseline for point in block)
        apart += baselines * (len(block) - baselines) / len(block)
    weight = math.fsum(arm * arm for arm in arms)
    if freedom < 1 or apart <= 0 or weight < LEAST_LEFT * apart:
        return None
    log = math.fsum(arm * left for arm, left in zip(arms, logs, strict=True)) / weight
    rest = math.fsum((left - log * arm) ** 2 for arm, left in zip(arms, logs, strict=True))
    widened = quantile(UPPER, freedom) / NORMAL_QUANTILE
    error = widened * math.sqrt(rest / freedom / weight)
    return Ratio(log, error) if max(abs(log), error) <= MOST_LOG else None


def _blocks(points: Sequence[Point]) -> Iterator[Sequence[Point]]:
    """Neighbours, about as many in each block, none without any."""
    if not points:
        return
    span = points[-1].at - points[0].at
    blocks = max(math.ceil(len(points) / BLOCK_RUNS), math.ceil(span / BLOCK_SECONDS), 1)
    ends = [round(len(points) * place / blocks) for place in range(blocks + 1)]
    yield from (points[first:end] for first, end in pairwise(ends) if end > first)


def _without_line(block: Sequence[Point]) -> tuple[int, list[list[float]]]:
    """How many figures the block's line has, and what it leaves of logarithms and of the arm."""
    centre = mean([point.at for point in block])
    ats = [point.at - centre for point in block]
    spread = math.fsum(at * at for at in ats)
    left = []
    for values in ([point.log for point in block], [float(one.is_baseline) for one in block]):
        level = mean(values)
        slope = math.fsum(at * value for at, value in zip(ats, values, strict=True))
        slope = slope / spread if spread else 0.0
        left.append([
            value - level - slope * at for at, value in zip(ats, values, strict=True)
        ])  # fmt: skip
    return 2 if spread else 1, left
