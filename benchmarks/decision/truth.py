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
    """Assumptions that a portfolio may break; none of them in the default one."""

    # Of time: lognormal between nodes and between starts of a process.
    node_sd: float = 0.04
    restart_sd: float = 0.007
    # Two kinds of nodes: this share takes so many times as long as the others.
    slow_nodes: float = 0.0
    slow_node_ratio: float = 1.0
    # Where a run may stop early: spread of its steps, lognormal around the full run's.
    run_length_sd: float = 0.0
    # Of the final metric: a name of noise.py, all of unit variance; 60 to 90 % is right.
    noise: str = "normal"
    level: tuple[float, float] = (60.0, 90.0)
    # The part of its variance that the evaluation's examples add, and how many times as many
    # examples as today's the runs are scored on, earlier ones scored again.
    evaluation_share: float = 0.9
    examples: float = 1.0
    # The part of its variance that a night gives to all that is trained in it, and the
    # correlation of one night with the next: a first-order autoregression.
    nights: float = 0.0
    night_memory: float = 0.8
    collapse_share: float = 0.0
    history_drift: float = 0.0  # sd of the history's offset, in sd of a seed
    history_offset: float = 0.0  # a fixed offset of the history, in sd of a seed
    # How the metric moves while a trial lasts, for both arms alike, in sd of a seed.
    trend: float = 0.0  # by so much with every full run
    walk: float = 0.0  # by a normal step of this sd from one period of production to the next
    moved_before: bool = False  # trend and walk moved the history, too
    candidate_spread: float = 1.0
    start_up_seconds: tuple[float, float] = (0.0, 0.0)

    @property
    def spread_factor(self) -> float:
        """sqrt(1 - e + e/r): what more examples leave of the metric's sd."""
        share = self.evaluation_share
        return math.sqrt(1 - share + share / self.examples)


STRESSES: dict[str, Stress] = {
    "none": Stress(),
    "nodes": Stress(node_sd=0.08),
    "slow_nodes": Stress(slow_nodes=0.3, slow_node_ratio=1.22),
    "early_stop": Stress(run_length_sd=0.25),
    "t5": Stress(noise="t5"),
    "t3": Stress(noise="t3"),
    "skew": Stress(noise="skew"),
    "bimodal": Stress(noise="bimodal"),
    "binomial": Stress(noise="binomial", level=(97.0, 99.3)),
    "nights": Stress(nights=0.5),
    "examples4": Stress(examples=4.0),
    "collapse": Stress(collapse_share=0.03),
    "drift": Stress(history_drift=0.5),
    "drift2": Stress(history_drift=1.0),
    "offset": Stress(history_offset=-0.5),
    "offset2": Stress(history_offset=-1.0),
    "offset3": Stress(history_offset=-1.5),
    "trend2": Stress(trend=0.02),
    "trend5": Stress(trend=0.05),
    "falling5": Stress(trend=-0.05),
    "walk": Stress(walk=0.15),
    "trend5_before": Stress(trend=0.05, moved_before=True),
    "walk_before": Stress(walk=0.15, moved_before=True),
    "spread": Stress(candidate_spread=1.5),
    "start_up": Stress(start_up_seconds=(60.0, 300.0)),
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
    start_up_seconds: float
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
    def effective_spread(self) -> float:
        """The metric's sd on the evaluation's examples of today's policy."""
        return self.spread * self.stress.spread_factor

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
        return self.start_up_seconds / 3600 + self.step_hours(arm)

    def step_hours(self, arm: Arm, length: float = 1.0) -> float:
        """Expected hours within the steps of a job of so many full runs' steps."""
        steady = self.run_steps(arm) * self.steps.mean_seconds(arm)
        return (arm.overhead_seconds + steady * length) / 3600

    def speedup(self, arm: Arm) -> float:
        """Ratio of full-job times, baseline over arm."""
        return self.hours(self.arms[0]) / self.hours(arm)

    def is_bad(self, arm: Arm) -> bool:
        """Whether promoting the arm is a mistake."""
        return arm.loss >= self.margin or self.speedup(arm) < REJECT

    def is_good(self, arm: Arm) -> bool:
        """Whether the arm should be promoted."""
        return arm.loss <= 0 and self.speedup(arm) >= PROMOTE

    @cached_property
    def has_good(self) -> bool:
        """Whether any arm should be promoted."""
        return any(self.is_good(arm) for arm in self.candidates)

    @property
    def is_provable(self) -> bool:
        """Whether a good arm could be proven with what production runs anyway."""
        return self.has_good and self.spread <= 0.8 * self.margin and self.runs_left >= 24


# ---- factors of time ----------------------------------------------------------------------


def node_factor(rng: np.random.Generator, stress: Stress) -> float:
    """How many times as long as the mean node one takes; of mean 1."""
    factor = unit_mean_factor(rng, stress.node_sd)
    if stress.slow_nodes:
        slow = rng.random() < stress.slow_nodes
        expected = 1 + stress.slow_nodes * (stress.slow_node_ratio - 1)
        factor *= (stress.slow_node_ratio if slow else 1.0) / expected
    return factor


def length_factor(rng: np.random.Generator, stress: Stress) -> float:
    """Steps of a run over those of a full one; of mean 1, and 1 unless runs may stop early."""
    return unit_mean_factor(rng, stress.run_length_sd) if stress.run_length_sd else 1.0


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
