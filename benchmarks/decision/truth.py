"""The truth about one workload: what it trains, how fast and how good each arm really is.

The speed-up of an arm is always that of whole jobs, compilation included. In a short segment,
neighbouring steps are alike (AR(1) in the logarithm), some straggle, some wait for data. The
compiler works inside the first steps, again soon after for new shapes, and ever more rarely later:
late recompilations lie log-uniform over the full run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

BASELINE = "baseline"
USD_PER_DEVICE_HOUR = 3.0
REJECT, PROMOTE = 1.10, 1.20
EARLY = 50  # by then the shapes of ordinary batches were seen
WARM_UP_EXCESS, WARM_UP_STEPS = 0.2, 10.0  # until caches and clocks are steady


@dataclass(frozen=True)
class Arm:
    """The truth of one arm; loss in the metric's unit, positive is worse."""

    name: str
    steady_ratio: float = 1.0  # baseline's compute seconds of a step over this arm's
    steps_ratio: float = 1.0  # steps of a full run over the baseline's
    compile_seconds: float = 0.0
    early_recompiles: int = 0
    late_recompiles: int = 0
    recompile_seconds: float = 0.0
    loss: float = 0.0
    spread_ratio: float = 1.0  # seed-to-seed sd over the baseline's
    correlation: float = 0.0  # with the baseline's metric of the same seed
    regression: float = 0.0  # what it loses more, some time after promotion
    regresses_at: int | None = None  # the production run after promotion where that begins
    only_compiler: bool = True  # nothing else differs from the baseline

    @property
    def overhead_seconds(self) -> float:
        """What a full run pays above its steady steps."""
        recompiles = self.early_recompiles + self.late_recompiles
        return self.compile_seconds + recompiles * self.recompile_seconds


@dataclass(frozen=True)
class Steps:
    """How the steps of a workload behave; shares are per step, ratios to the median step."""

    seconds: float
    count: int
    correlation: float
    variation: float
    straggler_share: float = 0.0
    straggler_ratio: float = 3.0
    stall_share: float = 0.0
    stall_ratio: float = 4.0  # added waiting for data, which no compiler shortens

    def mean_seconds(self, arm: Arm) -> float:
        """Expected seconds of a steady step; a larger batch takes longer for fewer steps."""
        compute = 1 + self.straggler_share * (self.straggler_ratio - 1)
        waiting = self.stall_share * self.stall_ratio
        return self.seconds / arm.steps_ratio * (compute / arm.steady_ratio + waiting)


@dataclass(frozen=True)
class Stress:
    """Assumptions that may be broken; none of them by default. Metrics are in sd of a seed."""

    # Of time: lognormal between nodes and between starts of a process.
    node_sd: float = 0.04
    restart_sd: float = 0.007
    # Of the final metric: a name of noise.py, all of unit variance.
    noise: str = "normal"
    # The part of its variance that a night gives to all that is trained in it, and the
    # correlation of one night with the next: a first-order autoregression.
    nights: float = 0.0
    night_memory: float = 0.8
    diverging: float = 0.0  # share of runs that end far below, with a useless metric
    examples: int | None = None  # the metric is a share of so many, in per cent
    # How the metric moves while a trial lasts, for both arms alike.
    trend: float = 0.0  # by so much with every full run
    walk: float = 0.0  # by a normal step of this sd from one period of production to the next
    candidate_spread: float = 1.0
    # The loss of an arm begins with its run of this number, counted from 0.
    lost_from: int = 0


STRESSES: dict[str, Stress] = {
    "none": Stress(),
    "trend2": Stress(trend=0.02),
    "trend5": Stress(trend=0.05),
    "walk": Stress(walk=0.15),
    "nights": Stress(nights=0.5),
    "variance": Stress(candidate_spread=math.sqrt(2)),
    "diverging": Stress(diverging=0.05),
    "rounded": Stress(examples=200),
    **{f"from {run + 1}": Stress(lost_from=run) for run in (1, 2, 3, 5, 8)},
    "t3": Stress(noise="t3"),
    "skew": Stress(noise="skew"),
}


@dataclass(frozen=True)
class Workload:
    """One training job that production repeats, with the truth about every arm."""

    name: str
    margin: float
    spread: float
    level: float
    history: tuple[float, ...]
    history_pace: tuple[float, ...]  # their time over the expected time, by node and restart
    steps: Steps
    devices: int
    runs_per_week: int
    weeks_left: int
    arms: tuple[Arm, ...]
    stress: Stress = field(default_factory=Stress)

    @property
    def runs_left(self) -> int:
        """Production runs until the horizon."""
        return self.runs_per_week * self.weeks_left

    @property
    def usd_per_hour(self) -> float:
        """Price of one hour of a full job."""
        return self.devices * USD_PER_DEVICE_HOUR

    @property
    def candidates(self) -> tuple[Arm, ...]:
        """Every arm but the baseline."""
        return self.arms[1:]

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)

    def run_steps(self, arm: Arm) -> int:
        """Steps of a full run of the arm."""
        return max(1, round(self.steps.count * arm.steps_ratio))

    def hours(self, arm: Arm) -> float:
        """Expected hours of a full job of the arm."""
        steady = self.run_steps(arm) * self.steps.mean_seconds(arm)
        return (arm.overhead_seconds + steady) / 3600

    def speedup(self, arm: Arm) -> float:
        """Ratio of full-job times, baseline over arm."""
        return self.hours(self.arms[0]) / self.hours(arm)

    def is_bad(self, arm: Arm) -> bool:
        """Whether promoting the arm is a mistake."""
        return arm.loss >= self.margin or self.speedup(arm) < REJECT

    def is_good(self, arm: Arm) -> bool:
        """Whether the arm should be promoted."""
        return arm.loss <= 0 and self.speedup(arm) >= PROMOTE

    def is_wanted(self, arm: Arm) -> bool:
        """Whether policy wants the arm on: fast enough, and its loss is below the margin."""
        return arm.loss < self.margin and self.speedup(arm) >= PROMOTE

    @cached_property
    def has_good(self) -> bool:
        """Whether any arm should be promoted."""
        return any(self.is_good(arm) for arm in self.candidates)

    @property
    def is_provable(self) -> bool:
        """Whether a good arm could be proven with what production runs anyway."""
        return self.has_good and self.spread <= 0.8 * self.margin and self.runs_left >= 24


# ---- steps of one segment -----------------------------------------------------------------


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
