"""The workload file: what a team says about one training job (docs/contracts.md).

Each key is declared here, once: the reader, its errors, the JSON Schema and the table of
docs/workload-file.md follow. Values beyond an upper bound are typing errors.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.compilers import COMPILERS, MODES, NAMES, compiler_named
from compilegate.domain.expected import Key, Problem, Section, key
from compilegate.domain.workload import names
from compilegate.domain.workload.quality import LISTED, Quality
from compilegate.domain.workload.schedule_expression import UTC, schedule_problem, timezone_problem

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
QUALITY_RUNS = ("shadow", "canary", "hybrid")
USE_EQUIVALENCE, STRICT = "use", "strict"
# Keys of a policy that 0.2.0 refuses.
NEWER_THAN_020 = ("equivalence", "holdback", "small_wins")
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
MOST_FALLBACKS = 8
# SageMaker ends a training job after 28 days (limits of Amazon SageMaker in the AWS reference).
MOST_HOURS = 672.0
HOUR = 3600
MIN_RUNTIME_SECONDS = 900
# A spot job that names no limit may wait for capacity as long as it may train.
WAIT_PER_RUNTIME = 2
# A smaller error takes more runs than any team makes.
LEAST_ALPHA = 1e-6
# Channels and hyperparameters by which scripts are given weights to start from.
_CHANNEL_OF_WEIGHTS = re.compile(
    r"(.*_)?(model|models|weights|checkpoints?|pretrained|previous|last|warm_?start|init)(_.*)?",
    re.IGNORECASE,
)
_OPTION_OF_WEIGHTS = re.compile(
    r"resume.*|init(ial)?_(from|checkpoint|weights|model).*|warm_?start.*|.*_checkpoint(_path)?|"
    r"(load|start|continue)_from.*|previous_model.*",
    re.IGNORECASE,
)
_OFF = ("", "false", "none", "null", "0", "scratch")
# What of ``training`` a candidate may replace; hyperparameters are laid over it instead.
TRAINING_KEYS = (
    "instance_type", "instance_count", "distribution", "precision", "batch_size", "entry_point",
)  # fmt: skip
# What the name of a control adds to that of its candidate.
CONTROL_SUFFIX = "-native"


# Keys that more than one section has.
_NAME = Key("unique; in names of jobs, flags and keys", form=names.NAME)
_INSTANCE_TYPE = Key("SageMaker instance type of one node", form=names.INSTANCE)
_INSTANCE_COUNT = Key("of one job", "instances", low=1, high=1000)
_BATCH_SIZE = Key("of one step on one GPU", "samples per device", low=1, high=10**7)
_ENTRY_POINT = Key("script that the job starts; launch.py runs any script", form=names.ENTRY_POINT)
_HYPERPARAMETERS = Key("arguments of the script, plain values", check=names.hyperparameter_problems)


def library(kind: str) -> str:
    """How the library of that kind spells its name; the kind itself where no table says."""
    return LIBRARIES.get(kind, kind)


@dataclass(frozen=True)
class Framework(Section):
    """Framework and versions, as the image names them."""

    name: str = key("the kind of image", allowed=FRAMEWORKS)
    version: str = key("of PyTorch, TensorFlow, XGBoost or scikit-learn", form=names.VERSION)
    transformers: str | None = key(
        "version, in Hugging Face images only", default=None, form=names.VERSION
    )
    python: str | None = key("as images name it, such as py310", default=None, form=names.PYTHON)

    @property
    def kind(self) -> str:
        """The library underneath, ``pytorch`` of huggingface-pytorch too."""
        return self.name.removeprefix("huggingface-")

    def problems(self) -> Iterator[Problem]:
        """Transformers in an image that has none."""
        if self.transformers and not self.name.startswith("huggingface-"):
            fix = f"use huggingface-{self.name}, or put transformers in requirements.txt"
            yield "transformers", "is in the Hugging Face images only", fix


@dataclass(frozen=True)
class Model(Section):
    """What is trained."""

    family: str = key("kind of model", allowed=FAMILIES)
    name: str = key("for people")


@dataclass(frozen=True)
class InstanceGroup(Section):
    """One group of a heterogeneous cluster."""

    name: str = key("of the group")
    instance_type: str = key(_INSTANCE_TYPE)
    instance_count: int = key(_INSTANCE_COUNT)


def job_seconds(max_runtime_hours: float) -> int:
    """The time limit that a job gets."""
    return max(MIN_RUNTIME_SECONDS, round(max_runtime_hours * HOUR))


@dataclass(frozen=True, kw_only=True)
class Training(Section):
    """One training job; ``starts_from`` is None where the file does not say.

    Where every run starts alike (newly drawn or the same pretrained weights), runs of both arms in
    turns are independent of each other. Where a run starts from the last run's model, of either
    arm, each arm continues what the other has done: a candidate's loss is carried into the
    baseline's next run, and the comparison sees half of it or none. Then production cannot make the
    runs of a trial, unless each arm continues from its own last model. Extra runs of one round do
    start alike.
    """

    source_dir: str = key("folder of the code, uploaded, but workload files", form=names.SOURCE_DIR)
    entry_point: str = key(_ENTRY_POINT)
    instance_type: str = key(_INSTANCE_TYPE)
    instance_count: int = key(_INSTANCE_COUNT)
    distribution: str = key("what starts a process on every GPU", allowed=DISTRIBUTIONS)
    precision: str = key("in which the job trains today", allowed=PRECISIONS)
    batch_size: int = key(_BATCH_SIZE)
    learning_rate: float = key("the optimizer's first", "learning rate", above=0.0, high=1000.0)
    hyperparameters: Mapping[str, Any] = key(_HYPERPARAMETERS, factory=dict)
    inputs: Mapping[str, str] = key(
        "channel to S3 URI; a relative path is uploaded",
        factory=dict,
        example="train: s3://bucket/train/",
        check=names.input_problems,
    )
    max_runtime_hours: float = key(
        "after which a job is stopped", "hours", above=0.0, high=MOST_HOURS
    )
    volume_gb: int = key("of an instance's disk", "gigabytes", default=100, low=1, high=16384)
    environment: Mapping[str, str] = key(
        "variables of every job",
        factory=dict,
        example="NCCL_DEBUG: WARN",
        check=names.environment_problems,
    )
    spot: bool = key("managed spot training, in every arm", default=False)
    max_wait_hours: float | None = key(
        "spot only: waiting and training together",
        "hours",
        default=None,
        above=0.0,
        high=MOST_HOURS,
    )
    instance_groups: tuple[InstanceGroup, ...] = key(
        "groups of a heterogeneous cluster", default=()
    )
    fallback_instances: tuple[str, ...] = key(
        "types for production's baseline while its own has no capacity",
        default=(),
        form=names.FALLBACK,
    )
    starts_from: str | None = key("which weights a run begins with", default=None, allowed=STARTS)

    @property
    def spot_waiting_seconds(self) -> int:
        """How long a job may wait for spot capacity on top of its training, 0 on demand."""
        if not self.spot:
            return 0
        own, hours = job_seconds(self.max_runtime_hours), self.max_wait_hours
        return max((WAIT_PER_RUNTIME * own if hours is None else round(hours * HOUR)) - own, 0)

    @property
    def longest_job_hours(self) -> float:
        """The longest that a job may train and wait for spot capacity together."""
        return (job_seconds(self.max_runtime_hours) + self.spot_waiting_seconds) / HOUR

    @property
    def unsaid_start(self) -> str:
        """Path of what may hold an earlier run's model, empty where the file says what does."""
        inputs, options = self.inputs, self.hyperparameters.items()
        places = [
            *(f"inputs.{name}" for name in inputs if _CHANNEL_OF_WEIGHTS.fullmatch(name)),
            *(
                f"hyperparameters.{name}"
                for name, value in options
                if _OPTION_OF_WEIGHTS.fullmatch(name) and str(value).strip().lower() not in _OFF
            ),
        ]
        return f"training.{places[0]}" if places and self.starts_from is None else ""

    def problems(self) -> Iterator[Problem]:
        """Waiting, other instance types and groups that do not fit the job."""
        wait, kinds = self.max_wait_hours, self.fallback_instances
        if wait is not None and not self.spot:
            yield "max_wait_hours", "is for spot jobs only", "add spot: true or remove it"
        elif wait is not None and wait < self.max_runtime_hours:
            problem = f"is below max_runtime_hours ({self.max_runtime_hours:g})"
            fix = "it counts the training too: make it at least as long"
            yield "max_wait_hours", problem, fix
        if self.instance_type in kinds:
            problem = f"holds {self.instance_type!r}, the job's own type"
            fix = "list other types: training.instance_type is always tried first"
            yield "fallback_instances", problem, fix
        if len(set(kinds)) < len(kinds):
            yield "fallback_instances", "names a type twice", "list each once"
        if len(kinds) > MOST_FALLBACKS:
            problem = f"holds {len(kinds)} types"
            yield "fallback_instances", problem, f"list at most {MOST_FALLBACKS}"
        groups = [group.name for group in self.instance_groups]
        if len(set(groups)) < len(groups):
            yield "instance_groups", "has two groups of one name", "give each its own"


@dataclass(frozen=True)
class Shapes(Section):
    """Whether tensor shapes repeat from step to step, and who loads the data."""

    static: bool = key("every step has the same tensor shapes")
    padding: str = key("of a batch's samples", default="max_length", allowed=PADDINGS)
    drop_last: bool = key("a smaller last batch is left out", default=True)
    loader: str = key("who loads the data", default="standard", allowed=LOADERS)


@dataclass(frozen=True)
class Schedule(Section):
    """How often production trains and how long a run takes; ``team_role``: docs/decisions/0019."""

    runs_per_week: float = key("of production", "runs per week", above=0.0, high=1e5)
    run_hours: float = key(
        "typical wall clock of a production run", "hours", above=0.0, high=MOST_HOURS
    )
    cron: str | None = key(
        "cron(…) or rate(…) of EventBridge Scheduler; absent: the team starts its runs",
        default=None,
    )
    timezone: str = key("in which cron is read", default=UTC)
    max_wait_hours: float | None = key(
        "for machines; absent: until the next run, at most 24",
        "hours",
        default=None,
        low=0.0,
        high=MOST_HOURS,
    )
    team_role: str | None = key(
        "ARN of the role that the team's own pipeline trains as; absent: the workload's",
        default=None,
        form=names.ROLE,
    )

    def problems(self) -> Iterator[Problem]:
        """What EventBridge Scheduler would not take."""
        problem = None if self.cron is None else schedule_problem(self.cron)
        if problem:
            yield "cron", *problem
        problem = timezone_problem(self.timezone, self.cron)
        if problem:
            yield "timezone", *problem


@dataclass(frozen=True)
class Profile(Section):
    """Measured in production; None where it was not."""

    gpu_utilization: float | None = key(
        "of the time in which the GPU works", "share of 1", default=None, low=0.0, high=1.0
    )
    data_wait_fraction: float | None = key(
        "of a step that waits for data", "share of 1", default=None, low=0.0, high=1.0
    )
    communication_fraction: float | None = key(
        "of a step that exchanges gradients", "share of 1", default=None, low=0.0, high=1.0
    )
    peak_memory_gib: float | None = key(
        "peak memory of one GPU", "GiB per device", default=None, above=0.0, high=1e5
    )
    compile_seconds: float | None = key(
        "compilation per run, with a warm cache",
        "seconds",
        default=None,
        low=0.0,
        high=1e6,
    )
    compile_seconds_cold: float | None = key(
        "compilation per run, without one", "seconds", default=None, low=0.0, high=1e6
    )

    def problems(self) -> Iterator[Problem]:
        """Shares of more than a step, and a warm cache that takes longer than none."""
        data, communication = self.data_wait_fraction or 0.0, self.communication_fraction or 0.0
        if data + communication > 1.0:
            problem = f"and data_wait_fraction ({data:g}) are together more than a whole step"
            yield "communication_fraction", problem, "measure both as shares of one step"
        warm, cold = self.compile_seconds, self.compile_seconds_cold
        if warm is not None and cold is not None and warm > cold:
            problem = f"is above compile_seconds_cold ({cold:g})"
            yield "compile_seconds", problem, "a warm cache cannot take longer: swap them"


@dataclass(frozen=True)
class Policy(Section):
    """What the team accepts; ``on_stale`` is about what production was proven on."""

    min_mean_speedup: float = key(
        "promote if short blocks average this or more",
        "times baseline",
        default=1.20,
        low=1.0,
        formerly="promote_speedup",
    )
    min_proven_speedup: float = key(
        "promote if short blocks and whole jobs are proven above",
        "times baseline",
        default=1.10,
        low=1.0,
        formerly="reject_speedup",
    )
    small_wins: float = key(
        "in place of both bars: each candidate is tried on top of what is on, and promoted if it "
        "is proven faster than that and short blocks average this or more; 0 is off",
        "times what is on",
        default=0.0,
        low=0.0,
    )
    alpha: float = key(
        "chance of promoting a bad candidate",
        "error probability",
        default=0.05,
        low=LEAST_ALPHA,
        high=0.5,
    )
    quality_runs: str = key("who makes the full runs", default="hybrid", allowed=QUALITY_RUNS)
    max_quality_runs: int = key(
        "full runs at most", "runs per candidate", default=96, low=2, high=10_000
    )
    max_trial_usd: float = key(
        "of a trial, never exceeded", "US dollars", default=5000.0, above=0.0, high=1e9
    )
    equivalence: str = key(
        "whether a compiled arm that passed the equivalence check needs fewer runs to prove its "
        "quality",
        default=USE_EQUIVALENCE,
        allowed=(USE_EQUIVALENCE, STRICT),
    )
    hold_models: bool = key(
        "hold a candidate's production models back until the verdict, and those of runs that "
        "check an alarm",
        default=True,
    )
    approval: str = key(
        "whether a person approves a promotion", default=NO_APPROVAL, allowed=APPROVALS
    )
    probation_runs: int = key(
        "of production that confirm a promotion", "runs", default=12, low=1, high=10_000
    )
    on_stale: str = key("a promotion whose job has changed", default=FALL_BACK, allowed=ON_STALE)
    holdback: float = key(
        "of runs on the baseline after a probation, which show what is saved: at least one in "
        "seven weeks (of one run a week 0.143), none of a job with less than one run in two "
        "weeks; 0 is none",
        "share of 1",
        default=0.04,
        low=0.0,
        high=0.5,
    )
    cooldown_days: float = key(
        "without a trial after a revert", "days", default=14.0, low=0.0, high=3650
    )

    def __post_init__(self) -> None:
        """Small wins have bars of their own, unless others are written beside them."""
        bars = self.min_mean_speedup, self.min_proven_speedup
        if self.small_wins and bars == (Policy.min_mean_speedup, Policy.min_proven_speedup):
            object.__setattr__(self, "min_mean_speedup", self.small_wins)
            object.__setattr__(self, "min_proven_speedup", 1.0)

    def problems(self) -> Iterator[Problem]:
        """A mean that is required below what must be proven; bars beside those of small wins."""
        bars = self.min_mean_speedup, self.min_proven_speedup
        if self.small_wins and (self.small_wins < 1 or bars != (self.small_wins, 1.0)):
            fix = "write 1.005 or so, or 0, and leave out min_mean_speedup and min_proven_speedup"
            yield "small_wins", "is a gain of 1 or more, and stands for both bars", fix
        elif self.min_mean_speedup < self.min_proven_speedup:
            problem = f"is below min_proven_speedup ({self.min_proven_speedup:g})"
            yield "min_mean_speedup", problem, "set min_mean_speedup to min_proven_speedup or more"

    def to_dict(self) -> dict[str, Any]:
        """As a document has it; a key that 0.2.0 refuses only where it is not the default."""
        document: dict[str, Any] = plain(dataclasses.asdict(self))
        for name in NEWER_THAN_020:
            if document[name] == getattr(Policy, name):
                del document[name]
        return document


@dataclass(frozen=True, kw_only=True)
class Candidate(Section):
    """A proposed change; None, or no hyperparameters, means as in the workload.

    ``hyperparameters`` are laid over the workload's; ``framework`` is another version's image,
    for what exists in no image of the workload's own.
    """

    framework: Framework | None = key("another image", default=None)
    name: str = key(_NAME)
    compiler: str | None = key("that it turns on", default=None, allowed=NAMES)
    batch_size: int | None = key(_BATCH_SIZE, default=None)
    learning_rate_scaling: str | None = key(
        "how the learning rate follows the batch of all devices", default=None, allowed=SCALINGS
    )
    instance_type: str | None = key(_INSTANCE_TYPE, default=None)
    instance_count: int | None = key(_INSTANCE_COUNT, default=None)
    precision: str | None = key("another precision", default=None, allowed=PRECISIONS)
    distribution: str | None = key("another launcher", default=None, allowed=DISTRIBUTIONS)
    compile_mode: str | None = key("of torch.compile", default=None, allowed=MODES)
    entry_point: str | None = key(_ENTRY_POINT, default=None)
    hyperparameters: Mapping[str, Any] = key(_HYPERPARAMETERS, factory=dict)

    def problems(self) -> Iterator[Problem]:
        """A mode that its compiler does not have."""
        compiler, mode = compiler_named(self.compiler), self.compile_mode
        if mode and mode not in compiler.modes:
            owners = [one.name for one in COMPILERS.values() if mode in one.modes]
            fix = f"add compiler: {owners[0]}"
            yield "compile_mode", f"is a setting of {' and '.join(owners)}", fix

    def applied_to(self, base: Training) -> Training:
        """The training as this candidate runs it."""
        own = {key: getattr(self, key) for key in TRAINING_KEYS if getattr(self, key) is not None}
        hyperparameters = {**base.hyperparameters, **self.hyperparameters}
        return dataclasses.replace(base, **own, hyperparameters=hyperparameters)

    def overrides(self) -> dict[str, Any]:
        """The keys this candidate changes, with their values."""
        changed = {key: value for key, value in dataclasses.asdict(self).items() if value}
        del changed["name"]
        return {key: plain(value) for key, value in changed.items()}


@dataclass(frozen=True, kw_only=True)
class OwnImage(Section):
    """A training image that the team brings; ``compiler`` is the one built into it."""

    framework: str = key("that it contains", allowed=FRAMEWORKS)
    version: str = key("of the framework")
    transformers: str | None = key("version", default=None)
    python: str | None = key("as images name it", default=None)
    compiler: str | None = key("the one built into it", default=None, allowed=NAMES)
    uri: str = key("with its registry and a tag or digest", form=names.IMAGE)


@dataclass(frozen=True)
class FactOverrides(Section):
    """Facts that the team overrides: USD per hour of one instance by type, and images."""

    prices: Mapping[str, float] = key(
        "USD per hour of one instance, by type", factory=dict, check=names.price_problems
    )
    images: tuple[OwnImage, ...] = key("the team's own images", default=())


@dataclass(frozen=True, kw_only=True)
class Workload(Section):
    """A validated workload file."""

    framework: Framework = key("image of the job")
    training: Training = key("the job as it runs today")
    name: str = key(_NAME)
    owner: str | None = key("receives messages; a tag of every job", default=None)
    model: Model = key("what is trained")
    shapes: Shapes = key("of the tensors of a step")
    schedule: Schedule = key("of production")
    profile: Profile = key("measured in production", factory=Profile)
    quality: Quality = key("what must not get worse")
    policy: Policy = key("what the team accepts", factory=Policy)
    candidates: tuple[Candidate, ...] = key(
        "proposed changes; derived by the planner if absent", default=()
    )
    tags: Mapping[str, str] = key(
        "of every job", factory=dict, example="cost-centre: ml", check=names.tag_problems
    )
    facts: FactOverrides = key("own prices and images", factory=FactOverrides)

    def to_dict(self) -> dict[str, Any]:
        """The document this was read from, with every default written out that 0.2.0 reads."""
        candidates = [{"name": one.name, **one.overrides()} for one in self.candidates]
        document = {**plain(dataclasses.asdict(self)), "candidates": candidates, "schema": SCHEMA}
        if self.profile == Profile():
            del document["profile"]
        document["policy"] = self.policy.to_dict()
        for name in LISTED:
            if not document["quality"][name]:
                del document["quality"][name]
        return document


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
