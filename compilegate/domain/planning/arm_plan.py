"""One arm of a trial as its jobs will be asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from compilegate.domain.compilers import has_own_image
from compilegate.domain.planning.factors import label
from compilegate.domain.planning.layout import Cluster

CANDIDATE = "candidate"
CONTROL = "control"


@dataclass(frozen=True)
class ArmPlan:
    """One arm's job; ``usd_per_hour`` is the whole cluster's, ``batch_size`` is per device.

    ``overrides`` are the arm's own changes, empty for the baseline. ``entry_point`` None and empty
    ``framework`` are the workload's; ``hyperparameters`` are laid over the workload's. ``role`` is
    baseline, candidate, or control: measured to tell effects apart, never promoted. ``why`` says
    what the arm is there for, ``factors`` what it changes. ``compile_seconds`` are those of a
    first compilation, known or assumed; None without either.
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
    factors: Sequence[str] = ()
    compile_seconds: float | None = None

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ArmPlan:
        """An arm of a recorded plan, whichever release has written it."""
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in record.items() if key in known})

    @property
    def global_batch(self) -> int:
        """Samples of one optimiser step over all devices."""
        return self.batch_size * self.devices

    @property
    def cluster(self) -> Cluster:
        """The machines that its jobs take."""
        return Cluster(self.instance_type, self.instance_count)

    @property
    def label(self) -> str:
        """What the arm changes: one factor or a bundle of several."""
        return label(self.factors, self.name)

    @property
    def shares_nodes(self) -> tuple[str, str, int, str, str | None, bool]:
        """Arms for which this is equal can run back to back on one node, in one job.

        The managed compiler is switched on for a whole job, even where its image is the same.
        """
        return (
            self.image, self.instance_type, self.instance_count, self.distribution,
            self.entry_point, has_own_image(self.compiler),
        )  # fmt: skip


def scaled_learning_rate(rate: float, batch_ratio: float, scaling: str | None) -> float:
    """Learning rate for a larger batch: linear (Goyal et al. 2017) or square root."""
    if scaling == "linear":
        return rate * batch_ratio
    if scaling == "sqrt":
        return rate * math.sqrt(batch_ratio)
    return rate
