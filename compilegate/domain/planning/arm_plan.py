"""One arm of a trial as its jobs will run, and the factors that it changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.codec import read
from compilegate.domain.compilers import compiler_named, has_own_image
from compilegate.domain.flag import OVERRIDE_KEYS, Flag
from compilegate.domain.workload.model import BASELINE, Candidate, Workload

CANDIDATE = "candidate"
CONTROL = "control"
LABEL = "as it runs today"
UNCOMPILED_LABEL = f"{LABEL}, its own compiling off"
# learning_rate_scaling follows the batch, and compile_mode is part of the compiler's treatment.
FACTORS = {
    "compiler": ("compiler",),
    "batch size": ("batch_size",),
    "precision": ("precision",),
    "instances": ("instance_type", "instance_count"),
    "distribution": ("distribution",),
    "framework": (),
    "script": ("entry_point",),
    "hyperparameters": ("hyperparameters",),
}


@dataclass(frozen=True)
class Cluster:
    """The machines of one job."""

    instance_type: str
    instances: int


@dataclass(frozen=True)
class ArmPlan:
    """One arm's job; ``usd_per_hour`` is the whole cluster's, ``batch_size`` is per device.

    ``overrides`` are the arm's own changes, empty for the baseline. ``entry_point`` None and empty
    ``framework`` are the workload's; ``hyperparameters`` are laid over the workload's. ``role`` is
    baseline, candidate, or control: measured to separate effects, never promoted. ``why`` says
    what the arm is there for, ``factors`` what it changes. ``compile_seconds`` are those of a
    first compilation, profiled or assumed; None without either.
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
    factors: tuple[str, ...] = ()
    compile_seconds: float | None = None

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ArmPlan:
        """An arm of a recorded plan, of this release or another."""
        return read(cls, record)

    @property
    def global_batch(self) -> int:
        """Samples of one optimizer step over all devices."""
        return self.batch_size * self.devices

    @property
    def cluster(self) -> Cluster:
        """The machines that its jobs take."""
        return Cluster(self.instance_type, self.instance_count)

    @property
    def label(self) -> str:
        """What the arm changes: ``one factor: compiler``, ``bundle of compiler and batch size``."""
        if not self.factors:
            return LABEL if self.name == BASELINE else "changes nothing"
        if len(self.factors) == 1:
            return f"one factor: {self.factors[0]}"
        return f"bundle of {', '.join(self.factors[:-1])} and {self.factors[-1]}"

    @property
    def shares_nodes(self) -> tuple[str, str, int, str, str | None, bool]:
        """Arms for which this is equal can run back to back on one node, in one job.

        The managed compiler is switched on for a whole job, even where its image is the same.
        """
        return (
            self.image, self.instance_type, self.instance_count, self.distribution,
            self.entry_point, has_own_image(self.compiler),
        )  # fmt: skip


def promoted(
    arm: ArmPlan, baseline: ArmPlan, *, decision_id: str, since: str | None = None
) -> Flag:
    """The flag of a candidate that was proven against its baseline."""
    keys = [key for key in OVERRIDE_KEYS if key in arm.overrides]
    # It follows the batch of all devices together, however that changes.
    if "batch_size" in keys or arm.learning_rate != baseline.learning_rate:
        keys.append("learning_rate")
    if arm.image != baseline.image:
        keys.append("image")
    return Flag(
        enabled=True,
        state="probation",
        candidate=arm.name,
        overrides={key: getattr(arm, key) for key in keys},
        decision_id=decision_id,
        since=since,
    )


def scaled_learning_rate(rate: float, batch_ratio: float, scaling: str | None) -> float:
    """Learning rate for a larger batch: linear (Goyal et al. 2017) or square root."""
    if scaling == "linear":
        return rate * batch_ratio
    if scaling == "sqrt":
        return rate * math.sqrt(batch_ratio)
    return rate


def changed_factors(
    candidate: Candidate, workload: Workload, *, same_global_batch: bool, same_framework: bool
) -> tuple[str, ...]:
    """The factors in which a candidate differs from the workload, in the order of ``FACTORS``.

    The batch that trains the model is the one of all devices: other machines change it too,
    unless the batch of a device makes up for that (``same_global_batch``). A framework may be
    named more loosely than the workload's and be the same (``same_framework``).
    """
    differs = {
        factor: any(_differs(candidate, workload, key) for key in keys)
        for factor, keys in FACTORS.items()
    }
    differs |= {"batch size": not same_global_batch, "framework": not same_framework}
    return tuple(factor for factor in FACTORS if differs[factor])


def _differs(candidate: Candidate, workload: Workload, key: str) -> bool:
    value = getattr(candidate, key)
    if value is None:
        return False
    if key == "compiler":
        return bool(value != "none")
    compiler = compiler_named(candidate.compiler)
    launching = None if compiler is None else compiler.launching
    if key == "distribution" and launching and value == launching.distribution:
        return False  # exists in that compiler's images only, so it cannot be varied apart
    now = getattr(workload.training, key)
    if key == "hyperparameters":
        return {**now, **value} != dict(now)
    return bool(value != now)
