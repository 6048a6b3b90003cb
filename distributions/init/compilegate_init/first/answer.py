"""What a whole production job would gain, from a few short runs of two kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.economics import AtLength
from compilegate.domain.judging.whole_job import from_steady_steps
from compilegate.domain.spreads import BLOCK_SD
from compilegate_init.first.seen import Seen

# Compiling is measured once. Another time it takes less, or much longer, where a shape comes that
# the short run has not met (benchmarks/first).
LONGER, SHORTER = 2.0, 1 / 1.2


@dataclass(frozen=True)
class Gain:
    """``here`` is the speed-up of the steps that were made, compiling among them.

    ``steady`` is that of steps in which nothing is compiled, ``overhead_seconds`` what compiling
    and the first steps took beyond the uncompiled run's. ``spread`` is what the steady speed-up
    of one pair is assumed to vary by, as a natural logarithm. ``at`` are other lengths.
    """

    steps: int
    step_seconds: float
    step_seconds_compiled: float
    here: float
    steady: float
    overhead_seconds: float
    spread: float
    at: tuple[AtLength, ...]

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; intervals as lists."""
        return asdict(self)


def gain(pairs: Sequence[tuple[Seen, Seen]], lengths: Sequence[float]) -> Gain | None:
    """From pairs of an uncompiled and a compiled run; None where no pair has steady steps."""
    # The first pair compiles with an empty cache, so its overhead is the one that counts.
    paces = [(base, mine) for eager, compiled in pairs
             if (base := eager.pace()) and (mine := compiled.pace())]  # fmt: skip
    if not paces:
        return None
    logs = [math.log(base.step_seconds / mine.step_seconds) for base, mine in paces]
    spread = math.sqrt(BLOCK_SD**2 + mean([base.error**2 + mine.error**2 for base, mine in paces]))
    base, mine = paces[0]
    overhead = max(mine.overhead_seconds - base.overhead_seconds, 0.0)
    count = min(base.steps, mine.steps)
    here = (base.overhead_seconds + count * base.step_seconds) / (
        mine.overhead_seconds + count * mine.step_seconds
    )
    return Gain(
        steps=count, step_seconds=mean([one.step_seconds for one, _ in paces]),
        step_seconds_compiled=mean([one.step_seconds for _, one in paces]), here=here,
        steady=math.exp(mean(logs)), overhead_seconds=overhead, spread=spread,
        at=tuple(at_length(one, logs, spread, overhead) for one in lengths),
    )  # fmt: skip


def at_length(
    seconds: float, logs: Sequence[float], spread: float, overhead_seconds: float
) -> AtLength:
    """What a run of so many seconds would gain; ``logs`` of pairs' speed-ups, ``spread`` theirs."""
    middle, longer, shorter = (
        from_steady_steps(seconds, logs, spread, factor * overhead_seconds)
        for factor in (1.0, LONGER, SHORTER)
    )
    return replace(middle, interval=(longer.interval[0], shorter.interval[1]))
