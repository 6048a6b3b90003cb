"""One arm of a trial as its jobs will be asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ArmPlan:
    """One arm's job; ``usd_per_hour`` is the whole cluster's, ``batch_size`` is per device.

    ``overrides`` are the candidate's own changes, empty for the baseline.
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


def scaled_learning_rate(rate: float, batch_ratio: float, scaling: str | None) -> float:
    """Learning rate for a larger batch: linear (Goyal et al. 2017) or square root."""
    if scaling == "linear":
        return rate * batch_ratio
    if scaling == "sqrt":
        return rate * math.sqrt(batch_ratio)
    return rate
