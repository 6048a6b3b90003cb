"""What is known about images, instances, prices and limits, with source and date.

Pure values and look-ups; ``compilegate.facts`` reads the files. A look-up answers None, or an
image without a URI and with the reason, where nothing is known: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compilegate.domain.facts_images import CompilerImage, FrameworkImage, Image, Registry
from compilegate.domain.facts_images import compiler_image as _compiler_image
from compilegate.domain.facts_images import framework_image as _framework_image
from compilegate.domain.facts_images import own_image as _own_image
from compilegate.domain.versions import matches
from compilegate.domain.workload import MANAGED_COMPILER, Framework, KnownBetter, OwnImage

GIVEN = "given in the workload file or cdk.json"


@dataclass(frozen=True)
class Price:
    """On-demand USD per hour of one instance; ``as_of`` is None where the source is undated."""

    instance_type: str
    usd_per_hour: float
    confidence: str
    as_of: str | None
    source: str


@dataclass(frozen=True)
class Gpu:
    """What a GPU computes in hardware, by NVIDIA's compute capability."""

    name: str
    compute_capability: str
    bf16: bool
    fp8: bool
    source: str


@dataclass(frozen=True)
class Instance:
    """An instance type; memory in GiB per GPU and per host, ``gpu`` None without one."""

    instance_type: str
    family: str
    gpus: int
    gpu: Gpu | None
    gpu_memory_gib: float | None
    vcpus: int
    memory_gib: float
    efa: bool
    retired: bool
    note: str | None
    source: str


@dataclass(frozen=True)
class TestedModel:
    """Largest batch per GPU without and with the managed compiler."""

    framework: str
    model: str
    instance_type: str
    sequence_length: int | None
    native_batch: int
    compiled_batch: int


@dataclass(frozen=True)
class CompileOverhead:
    """Seconds a run pays for compilation: with a warm cache, and without any."""

    compiler: str
    family: str | None
    warm_seconds: float
    cold_seconds: float
    basis: str


@dataclass(frozen=True)
class ComputeSpeedup:
    """Range of what a compiler may do to the compute part of a step (ratio)."""

    compiler: str
    low: float
    high: float
    basis: str


@dataclass(frozen=True)
class Limits:
    """Limits of a CreateTrainingJob request; counts and characters."""

    job_name_max: int
    job_name_pattern: str
    hyperparameters_max: int
    hyperparameter_key_max: int
    hyperparameter_value_max: int
    environment_max: int
    environment_key_max: int
    environment_value_max: int
    environment_key_pattern: str
    metric_definitions_max: int
    metric_name_max: int
    metric_regex_max: int
    tags_max: int
    tag_key_max: int
    tag_value_max: int
    channels_min: int
    channels_max: int
    image_max: int
    failure_reason_max: int


@dataclass(frozen=True)
class ManagedCompiler:
    """SageMaker Training Compiler: what it exists for and how long it will."""

    status: str
    status_source: str
    instance_families: tuple[str, ...]
    instance_families_source: str
    images: tuple[CompilerImage, ...]


@dataclass(frozen=True)
class Facts:
    """Every fact file, read once."""

    as_of: str
    instances: Mapping[str, Instance]
    prices: Mapping[str, Price]
    images: tuple[FrameworkImage, ...]
    registries: Mapping[str, Registry]
    managed: ManagedCompiler
    tested_models: tuple[TestedModel, ...]
    compile_overheads: tuple[CompileOverhead, ...]
    compute_speedups: tuple[ComputeSpeedup, ...]
    limits: Limits
    own_images: tuple[OwnImage, ...] = ()

    def instance(self, instance_type: str) -> Instance | None:
        """The instance type, None when it is not on file."""
        return self.instances.get(instance_type)

    def overridden(self, better: KnownBetter) -> Facts:
        """These facts with what a team knows better in their place."""
        given = {
            kind: Price(kind, usd, "given", None, GIVEN) for kind, usd in better.prices.items()
        }
        return replace(
            self, prices={**self.prices, **given}, own_images=(*better.images, *self.own_images)
        )

    def price(self, instance_type: str) -> Price | None:
        """USD per hour of one instance, None when no price is known."""
        return self.prices.get(instance_type)

    def image(
        self,
        framework: Framework,
        *,
        compiler: str,
        region: str,
        instance: Instance | None = None,
    ) -> Image:
        """The training image, the team's own first; without an instance the GPU variant."""
        own = _own_image(self.own_images, framework, compiler)
        if own is not None:
            return Image(own.uri, source=GIVEN)
        if compiler == MANAGED_COMPILER:
            return _compiler_image(self.managed.images, self.registries, framework, region)
        found = _framework_image(self.images, self.registries, framework, region, instance is None
                                 or instance.gpus > 0)  # fmt: skip
        if found.uri is None:
            same = [row for row in self.managed.images if row.same_image and row.fits(framework)]
            if same:
                return _compiler_image(same, self.registries, framework, region)
        return found

    def compile_overhead(self, compiler: str, family: str) -> CompileOverhead | None:
        """The row of the family, else the compiler's general one."""
        rows = [row for row in self.compile_overheads if row.compiler == compiler]
        own = [row for row in rows if row.family == family]
        general = [row for row in rows if row.family is None]
        return next(iter(own + general), None)

    def compute_speedup(self, compiler: str) -> ComputeSpeedup | None:
        """What the compiler may do to compute; None when nothing is assumed for it."""
        return next((row for row in self.compute_speedups if row.compiler == compiler), None)

    def tested(self, framework: Framework, model: str, instance_type: str) -> list[TestedModel]:
        """Rows of the managed compiler's tested models for this very combination."""
        label = "TensorFlow" if framework.name.endswith("tensorflow") else "PyTorch"
        return [
            row
            for row in self.tested_models
            if row.model == model
            and row.instance_type == instance_type
            and matches(framework.version, _version_after(row.framework, label))
        ]


def _version_after(text: str, label: str) -> str:
    """``Transformers 4.11.0 with PyTorch 1.9.0`` after ``PyTorch`` is ``1.9.0``."""
    _, found, rest = text.partition(f"{label} ")
    return rest if found else ""
