"""The workload file: what a team says about one training job (design contract, section 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1
FRAMEWORKS = (
    "huggingface-pytorch", "pytorch", "huggingface-tensorflow", "tensorflow", "xgboost",
    "sklearn", "other",
)  # fmt: skip
FAMILIES = ("transformer", "diffusion", "vision", "recsys", "gbt", "classical", "custom")
DISTRIBUTIONS = ("none", "pytorchddp", "torch_distributed", "pytorchxla", "smddp", "smp")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
PADDINGS = ("max_length", "longest", "none")
GOALS = ("maximize", "minimize")
QUALITY_RUNS = ("shadow", "canary", "hybrid")
MANAGED_COMPILER = "sagemaker_training_compiler"
COMPILERS = ("none", "torch_compile", MANAGED_COMPILER)
SCALINGS = ("linear", "sqrt", "none")
BASELINE = "baseline"


@dataclass(frozen=True)
class Framework:
    """Framework and versions, as the image names them."""

    name: str
    version: str
    transformers: str | None = None
    python: str | None = None


@dataclass(frozen=True)
class Model:
    """What is trained."""

    family: str
    name: str


@dataclass(frozen=True)
class Training:
    """One training job; ``batch_size`` is per device, ``inputs`` maps channel to S3 URI or path."""

    source_dir: str
    entry_point: str
    instance_type: str
    instance_count: int
    distribution: str
    precision: str
    batch_size: int
    learning_rate: float
    max_runtime_hours: float
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    volume_gb: int = 100
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Shapes:
    """Whether tensor shapes repeat from step to step."""

    static: bool
    padding: str = "max_length"
    drop_last: bool = True


@dataclass(frozen=True)
class Schedule:
    """How often production trains and how long a run takes (hours of wall clock)."""

    runs_per_week: float
    run_hours: float
    cron: str | None = None


@dataclass(frozen=True)
class Profile:
    """Shares of a step measured in production, 0 to 1."""

    gpu_utilization: float | None = None
    data_wait_fraction: float | None = None
    communication_fraction: float | None = None


@dataclass(frozen=True)
class Quality:
    """The metric that must not get worse by ``margin``, in the metric's own unit."""

    metric: str
    goal: str
    margin: float
    history: tuple[float, ...] = ()


@dataclass(frozen=True)
class Policy:
    """What the team accepts; speed-ups are ratios of full-run time, money is in USD."""

    promote_speedup: float = 1.20
    reject_speedup: float = 1.10
    alpha: float = 0.05
    quality_runs: str = "hybrid"
    max_quality_runs: int = 36
    probation_runs: int = 12
    max_trial_usd: float = 5000.0


@dataclass(frozen=True)
class Candidate:
    """A proposed change; None means as in the workload."""

    name: str
    compiler: str | None = None
    batch_size: int | None = None
    learning_rate_scaling: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    precision: str | None = None
    distribution: str | None = None

    def overrides(self) -> dict[str, Any]:
        """The keys this candidate changes, with their values."""
        values = dataclasses.asdict(self)
        return {key: value for key, value in values.items() if key != "name" and value is not None}


@dataclass(frozen=True)
class Workload:
    """A validated workload file."""

    name: str
    framework: Framework
    model: Model
    training: Training
    shapes: Shapes
    schedule: Schedule
    quality: Quality
    owner: str | None = None
    profile: Profile | None = None
    policy: Policy = field(default_factory=Policy)
    candidates: tuple[Candidate, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The document this was read from, with every default written out."""
        return {"schema": SCHEMA, **_plain(dataclasses.asdict(self))}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
