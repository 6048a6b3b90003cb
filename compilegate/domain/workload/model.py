"""The workload file: what a team says about one training job (docs/contracts.md)."""

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
LOADERS = ("standard", "custom")
PADDINGS = ("max_length", "longest", "none")
GOALS = ("maximize", "minimize")
QUALITY_RUNS = ("shadow", "canary", "hybrid")
# What happens to a flag whose decision no longer holds for what production trains.
FALL_BACK, KEEP = "fall_back", "keep"
ON_STALE = (FALL_BACK, KEEP)
NO_APPROVAL, REQUIRED = "none", "required"
APPROVALS = (NO_APPROVAL, REQUIRED)
# What a run starts from: the same weights as every run, or what an earlier run has trained.
SCRATCH, PREVIOUS, OWN_LINE = "scratch", "previous", "own_line"
STARTS = (SCRATCH, PREVIOUS, OWN_LINE)
SCALINGS = ("linear", "sqrt", "none")
BASELINE = "baseline"
LIBRARIES = {"pytorch": "PyTorch", "tensorflow": "TensorFlow"}
# What of ``training`` a candidate may replace; hyperparameters are laid over it instead.
TRAINING_KEYS = (
    "instance_type", "instance_count", "distribution", "precision", "batch_size", "entry_point",
)  # fmt: skip
# What the name of a control adds to that of its candidate.
CONTROL_SUFFIX = "-native"


def library(kind: str) -> str:
    """How the library of that kind spells its name; the kind itself where no table says."""
    return LIBRARIES.get(kind, kind)


@dataclass(frozen=True)
class Framework:
    """Framework and versions, as the image names them."""

    name: str
    version: str
    transformers: str | None = None
    python: str | None = None

    @property
    def kind(self) -> str:
        """The library underneath, ``pytorch`` of huggingface-pytorch too."""
        return self.name.removeprefix("huggingface-")


@dataclass(frozen=True)
class Model:
    """What is trained."""

    family: str
    name: str


@dataclass(frozen=True)
class InstanceGroup:
    """One group of a heterogeneous cluster."""

    name: str
    instance_type: str
    instance_count: int


@dataclass(frozen=True)
class Training:
    """One training job; ``batch_size`` is per device, ``inputs`` maps channel to S3 URI or path.

    ``spot`` asks for managed spot training in every arm, waiting ``max_wait_hours`` in all for
    capacity and training. ``instance_groups`` describe a heterogeneous cluster, empty for one of
    a single type. ``fallback_instances`` are types on which production trains its baseline while
    there is no capacity of its own type. ``starts_from`` is one of STARTS, None where the file does
    not say (starts.py).
    """

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
    spot: bool = False
    max_wait_hours: float | None = None
    instance_groups: tuple[InstanceGroup, ...] = ()
    fallback_instances: tuple[str, ...] = ()
    starts_from: str | None = None


@dataclass(frozen=True)
class Shapes:
    """Whether tensor shapes repeat from step to step, and who loads the data."""

    static: bool
    padding: str = "max_length"
    drop_last: bool = True
    loader: str = "standard"


@dataclass(frozen=True)
class Schedule:
    """How often production trains and how long a run takes (hours of wall clock).

    ``timezone`` is the zone in which ``cron`` is read.
    ``max_wait_hours`` is how long a run may wait for capacity; None is until the next run, at
    most a day. ``team_role`` is the ARN of the role that the team's own pipeline trains as, None
    the workload's (docs/decisions/0024).
    """

    runs_per_week: float
    run_hours: float
    cron: str | None = None
    max_wait_hours: float | None = None
    timezone: str = "UTC"
    team_role: str | None = None


@dataclass(frozen=True)
class Profile:
    """Measured in production: shares of a step, 0 to 1; GiB per device; seconds per run.

    ``compile_seconds`` is what a run of this job paid for compilation from a warm cache,
    ``compile_seconds_cold`` without one.
    """

    gpu_utilization: float | None = None
    data_wait_fraction: float | None = None
    communication_fraction: float | None = None
    peak_memory_gib: float | None = None
    compile_seconds: float | None = None
    compile_seconds_cold: float | None = None


@dataclass(frozen=True)
class Quality:
    """The metric that must not get worse by ``margin``, in the metric's own unit.

    ``history_set`` identifies the evaluation examples that all of ``history`` was scored on.
    ``early_stopping`` declares that the script decides when a run ends, so that runs differ in
    their steps; None where nothing is said of it.
    """

    metric: str
    goal: str
    margin: float
    history: tuple[float, ...] = ()
    history_set: str | None = None
    early_stopping: bool | None = None


@dataclass(frozen=True)
class Policy:
    """What the team accepts; speed-ups are ratios of full-run time, money is in USD.

    ``on_stale`` says what happens to a promotion once production is no longer what it was proven
    on; for ``cooldown_days`` after a revert no trial is begun. ``hold_models``: what a candidate
    trains in production during a trial is tagged as held back until the verdict. ``approval``:
    whether a person has to agree before a promotion takes effect.
    """

    promote_speedup: float = 1.20
    reject_speedup: float = 1.10
    alpha: float = 0.05
    quality_runs: str = "hybrid"
    max_quality_runs: int = 96
    probation_runs: int = 12
    max_trial_usd: float = 5000.0
    on_stale: str = FALL_BACK
    cooldown_days: float = 14.0
    hold_models: bool = True
    approval: str = NO_APPROVAL


@dataclass(frozen=True)
class Candidate:
    """A proposed change; None means as in the workload.

    ``hyperparameters`` are laid over the workload's; ``framework`` is another version's image,
    for what exists in no image of the workload's own.
    """

    name: str
    compiler: str | None = None
    batch_size: int | None = None
    learning_rate_scaling: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    precision: str | None = None
    distribution: str | None = None
    compile_mode: str | None = None
    framework: Framework | None = None
    entry_point: str | None = None
    hyperparameters: Mapping[str, Any] | None = None

    def applied_to(self, base: Training) -> Training:
        """The training as this candidate runs it."""
        own = {key: getattr(self, key) for key in TRAINING_KEYS if getattr(self, key) is not None}
        hyperparameters = {**base.hyperparameters, **(self.hyperparameters or {})}
        return dataclasses.replace(base, **own, hyperparameters=hyperparameters)

    def overrides(self) -> dict[str, Any]:
        """The keys this candidate changes, with their values."""
        changed = {key: value for key, value in vars(self).items() if value is not None}
        del changed["name"]
        if self.framework is not None:
            changed["framework"] = dataclasses.asdict(self.framework)
        return {key: plain(value) for key, value in changed.items()}


@dataclass(frozen=True)
class OwnImage:
    """A training image that the team brings; ``compiler`` is the one built into it."""

    framework: str
    version: str
    uri: str
    transformers: str | None = None
    python: str | None = None
    compiler: str | None = None


@dataclass(frozen=True)
class FactOverrides:
    """Facts that the team overrides: USD per hour of one instance by type, and images."""

    prices: Mapping[str, float] = field(default_factory=dict)
    images: tuple[OwnImage, ...] = ()


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
    tags: Mapping[str, str] = field(default_factory=dict)
    facts: FactOverrides = field(default_factory=FactOverrides)

    def to_dict(self) -> dict[str, Any]:
        """The document this was read from, with every default written out."""
        return {"schema": SCHEMA, **plain(dataclasses.asdict(self))}


def plain(value: Any) -> Any:
    """Mappings and lists as JSON, without None values."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def controlled_by(control: str) -> str:
    """Name of the candidate that a control of this name belongs to."""
    return control.removesuffix(CONTROL_SUFFIX)
