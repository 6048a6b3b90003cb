"""The truth about one workload: what it trains, how fast and how good each arm really is.

The speed-up of an arm is always that of whole jobs, compilation included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

BASELINE = "baseline"
USD_PER_DEVICE_HOUR = 3.0
REJECT, PROMOTE = 1.10, 1.20


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
    """Assumptions that a portfolio may break."""

    node_sd: float = 0.04
    restart_sd: float = 0.007
    noise: str = "normal"  # of the final metric: normal | t5 | skew, all of unit variance
    collapse_share: float = 0.0
    history_drift: float = 0.0  # sd of the history's offset, in sd of a seed
    candidate_spread: float = 1.0
    start_up_seconds: tuple[float, float] = (0.0, 0.0)


STRESSES: dict[str, Stress] = {
    "none": Stress(),
    "nodes": Stress(node_sd=0.08),
    "t5": Stress(noise="t5"),
    "skew": Stress(noise="skew"),
    "collapse": Stress(collapse_share=0.03),
    "drift": Stress(history_drift=0.5),
    "drift2": Stress(history_drift=1.0),
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
        return (self.start_up_seconds + arm.overhead_seconds + steady) / 3600

    def speedup(self, arm: Arm) -> float:
        """Ratio of full-job times, baseline over arm."""
        return self.hours(self.arms[0]) / self.hours(arm)

    def is_bad(self, arm: Arm) -> bool:
        """Whether promoting the arm is a mistake."""
        return arm.loss >= self.margin or self.speedup(arm) < REJECT

    def is_good(self, arm: Arm) -> bool:
        """Whether the arm should be found."""
        return arm.loss <= 0 and self.speedup(arm) >= PROMOTE

    @cached_property
    def has_good(self) -> bool:
        """Whether there is anything to find."""
        return any(self.is_good(arm) for arm in self.candidates)

    @property
    def is_provable(self) -> bool:
        """Whether a good arm could be proven with what production runs anyway."""
        return self.has_good and self.spread <= 0.8 * self.margin and self.runs_left >= 24
