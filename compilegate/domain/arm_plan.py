"""One arm of a trial as its jobs will be asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CANDIDATE = "candidate"
CONTROL = "control"


@dataclass(frozen=True)
class ArmPlan:
    """One arm's job; ``usd_per_hour`` is the whole cluster's, ``batch_size`` is per device.

    ``overrides`` are the arm's own changes, empty for the baseline. ``entry_point`` None and empty
    ``framework`` are the workload's; ``hyperparameters`` are laid over the workload's. ``role`` is
    baseline, candidate, or control: measured to tell effects apart, never promoted. ``why`` says
    what the arm is there for.
    """

    name: str
    compiler: str
    image: str
    instance_type: str
    instance_count: int
    devices: int
    usd_per_hour: float
    precision: str
    batch_size: int
    learning_rate: float
    distribution: str
    overrides: Mapping[str, Any]
    compile_mode: str | None = None
    entry_point: str | None = None
    framework: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    role: str = CANDIDATE
    why: str = ""

    @property
    def shares_nodes(self) -> tuple[str, str, int, str, str | None]:
        """Arms for which this is equal can run back to back on one node, in one job."""
        return (
            self.image, self.instance_type, self.instance_count, self.distribution,
            self.entry_point,
        )  # fmt: skip


def scaled_learning_rate(rate: float, batch_ratio: float, scaling: str | None) -> float:
    """Learning rate for a larger batch: linear (Goyal et al. 2017) or square root."""
    if scaling == "linear":
        return rate * batch_ratio
    if scaling == "sqrt":
        return rate * math.sqrt(batch_ratio)
    return rate
