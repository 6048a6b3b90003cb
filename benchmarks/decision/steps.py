"""Step times of one short segment: one fresh process of one arm on one node.

Neighbouring steps are alike (AR(1) in the logarithm), some straggle, some wait for data. The
compiler works inside the first steps, again soon after for shapes it had not seen, and ever
more rarely later: late recompilations lie log-uniform over the full run.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from benchmarks.decision.truth import Arm, Workload

EARLY = 50  # by then the shapes of ordinary batches were seen
WARM_UP_EXCESS, WARM_UP_STEPS = 0.2, 10.0  # caches and clocks settle


def unit_mean_factor(rng: np.random.Generator, sd: float) -> float:
    """A lognormal factor of mean 1: one node, or one start of a process."""
    return math.exp(sd * float(rng.standard_normal()) - sd * sd / 2)


def correlated(
    rng: np.random.Generator, count: int, correlation: float, variation: float
) -> npt.NDArray[np.float64]:
    """AR(1) deviations of stationary sd ``variation``."""
    shocks = variation * math.sqrt(1 - correlation**2) * rng.standard_normal(count)
    shocks[0] /= math.sqrt(1 - correlation**2)
    return np.asarray(lfilter([1.0], [1.0, -correlation], shocks), dtype=np.float64)


def segment(
    rng: np.random.Generator, workload: Workload, arm: Arm, *, steps: int, node: float
) -> tuple[list[float], float]:
    """Seconds of each step, and the seconds of compilation among them."""
    pace, size = workload.steps, workload.steps.seconds / arm.steps_ratio
    deviation = correlated(rng, steps, pace.correlation, pace.variation)
    seconds = size / arm.steady_ratio * np.exp(deviation - pace.variation**2 / 2)
    seconds *= 1 + WARM_UP_EXCESS * np.exp(-np.arange(steps) / WARM_UP_STEPS)
    straggles = rng.random(steps) < pace.straggler_share
    seconds = np.where(straggles, seconds * pace.straggler_ratio, seconds)
    seconds += (rng.random(steps) < pace.stall_share) * size * pace.stall_ratio
    compiling = _compilation(rng, arm, steps, workload.run_steps(arm))
    factor = node * unit_mean_factor(rng, workload.stress.restart_sd)
    total = factor * (seconds + compiling)
    return [round(x, 6) for x in total.tolist()], round(factor * float(compiling.sum()), 6)


def _compilation(
    rng: np.random.Generator, arm: Arm, steps: int, full_run: int
) -> npt.NDArray[np.float64]:
    """Seconds that compiling adds to each step of the segment."""
    added = np.zeros(steps)
    first = float(rng.uniform(0.7, 1.0))
    added[0] += first * arm.compile_seconds
    added[min(1, steps - 1)] += (1 - first) * arm.compile_seconds
    early = rng.integers(0, min(EARLY, steps), arm.early_recompiles)
    last = max(EARLY + 1, full_run)
    late = np.exp(rng.uniform(math.log(EARLY), math.log(last), arm.late_recompiles)).astype(int)
    for at in (*early, *late[late < steps]):
        added[at] += arm.recompile_seconds
    return added
