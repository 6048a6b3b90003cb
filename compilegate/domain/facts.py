"""Images, instances, prices and tested models, with source and date.

Pure values and look-ups; ``compilegate.facts`` reads the files. Nothing is guessed: a look-up
answers None, or an image without a URI and with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from compilegate.domain.compilers import compiler_named
from compilegate.domain.faults import FaultTable
from compilegate.domain.optional import map_optional, with_known
from compilegate.domain.workload.model import FactOverrides, Framework, OwnImage, library

# Framework versions as people write them: ``2.1`` names every ``2.1.x``.


@lru_cache(maxsize=1024)
def parts(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for ordering: ``2.13.0a1`` is (2, 13, 0)."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in numbers[0].split(".")) if numbers else ()


def matches(version: str, available: str) -> bool:
    """Whether ``available`` is ``version``, or a release within it."""
    return available == version or (
        bool(version) and available.startswith(version) and available[len(version)] in ".-"
    )


# Which training image a framework, compiler and region get, or why there is none.

CONFIGURED = "given in the workload file or cdk.json"
CROSS_REGION = (
    "CreateTrainingJob's answer to an image of another region, "
    "github.com/aws-samples/mlops-amazon-sagemaker/issues/9"
)


@dataclass(frozen=True)
class Image:
    """A training image; ``uri`` is empty with reason code and text in its place."""

    uri: str
    code: str = ""
    why: str = ""
    patched_until: str | None = None
    source: str = ""


@dataclass(frozen=True)
class Registry:
    """Account that holds the images, by region."""

    accounts: Mapping[str, str]
    source: str
    as_of: str

    def uri(self, region: str, repository: str, tag: str) -> str:
        """The image's URI in a region, empty where the images are not published."""
        account = self.accounts.get(region)
        if account is None:
            return ""
        domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        return f"{account}.dkr.ecr.{region}.{domain}/{repository}:{tag}"


@dataclass(frozen=True)
class FrameworkImage:
    """An image without the managed compiler; a tag is None where the variant does not exist."""

    framework: str
    version: str
    transformers: str | None
    python: str | None
    repository: str
    gpu_tag: str | None
    cpu_tag: str | None
    registry: str
    patched_until: str | None
    source: str
    as_of: str


@dataclass(frozen=True)
class CompilerImage:
    """An image with the managed compiler; ``native_image`` is its twin without, if any."""

    framework: str
    version: str
    versions_accepted: tuple[str, ...]
    transformers: str | None
    python: str
    repository: str
    tag: str
    registry: str
    regions: tuple[str, ...]
    multi_device: str
    native_image: str | None
    same_image: bool
    ships_transformers: bool
    listed_2026: bool
    estimator: str
    launch: str
    min_sdk: str
    released: str | None
    note: str | None
    source: str
    as_of: str

    def fits(self, framework: Framework) -> bool:
        """Whether framework and versions are this image's; an unnamed version fits any."""
        return (
            framework.name == self.framework
            and any(matches(framework.version, version) for version in self.versions_accepted)
            and _agrees(framework.transformers, self.transformers)
            and _agrees(framework.python, self.python)
        )


# What names an image: a framework's versions, or a row of a table of images.
Versions = Framework | FrameworkImage | CompilerImage


def age(row: Versions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For ordering rows from the oldest versions to the newest."""
    return parts(row.version), parts(row.transformers or "")


def label(row: Versions) -> str:
    """``1.11.0 with transformers 4.21.1 (py38)``."""
    transformers = f" with transformers {row.transformers}" if row.transformers else ""
    return f"{row.version}{transformers}{f' ({row.python})' if row.python else ''}"


def _none(why: str, code: str = "no_compiler_image", source: str = "") -> Image:
    return Image("", code, why, source=source)


def _same(version: str | None, own: str | None) -> bool:
    """A team may leave out versions of its own image, or write 2.8 for 2.8.0."""
    return version is None or own is None or matches(version, own) or matches(own, version)


def _agrees(version: str | None, available: str | None) -> bool:
    return version is None or (available is not None and matches(version, available))


ABSENT = "ECR DescribeImages, by compilegate facts refresh"


@dataclass(frozen=True)
class Price:
    """The on-demand price of one instance, in US dollars per hour.

    ``region`` and ``as_of`` are None where the source does not name them; ``confidence`` is
    list, high, medium, low or given (docs/facts.md).
    """

    instance_type: str
    usd_per_hour: float
    confidence: str
    region: str | None
    as_of: str | None
    source: str


@dataclass(frozen=True)
class Quota:
    """How many instances of a type the account's training jobs may use at once."""

    instance_type: str
    spot: bool
    instances: int
    as_of: str
    source: str


@dataclass(frozen=True)
class Gpu:
    """What a GPU computes in hardware, by NVIDIA's compute capability."""

    name: str
    compute_capability: str
    bf16: bool
    fp8: bool
    confidence: str
    source: str
    as_of: str


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
    network: str | None
    note: str | None
    source: str
    as_of: str

    def devices(self, count: int) -> int:
        """GPUs of ``count`` instances, one for each without a GPU."""
        return max(self.gpus, 1) * count


@dataclass(frozen=True)
class LowerPrecision:
    """What bf16 or fp16 was published to do to a job in fp32 (ratio of speeds).

    ``compiler_gain_fp32`` and ``compiler_gain_lower`` are shares that torch.compile gained on
    average in either precision, on ``compiler_measured_on``.
    """

    low: float
    high: float
    measured_on: str
    confidence: str
    compiler_gain_fp32: float
    compiler_gain_lower: float
    compiler_measured_on: str
    basis: str
    source: str
    as_of: str


@dataclass(frozen=True)
class TestedModel:
    """Largest batch per GPU that AWS tested without and with the managed compiler.

    ``native_batch`` is None where the table leaves it out.
    """

    framework: str
    domain: str
    model: str
    dataset: str | None
    instance_type: str
    precision: str
    setting: str | None
    sequence_length: int | None
    native_batch: int | None
    compiled_batch: int
    source: str
    as_of: str

    @property
    def batch_ratio(self) -> float | None:
        """Compiled over native batch: no speed-up, and below 1 for many models."""
        return self.compiled_batch / self.native_batch if self.native_batch else None


@dataclass(frozen=True)
class ManagedCompiler:
    """SageMaker Training Compiler: its name, what it exists for and how long it will."""

    compiler: str
    status: str
    status_source: str
    instance_families: tuple[str, ...]
    instance_families_source: str
    images: tuple[CompilerImage, ...]


@dataclass(frozen=True)
class Facts:
    """Every fact that decisions rest on.

    ``quotas`` and ``absent_images`` (URI to the day it was looked up) are empty until
    ``compilegate facts refresh`` has read them from an account.
    """

    as_of: str
    instances: Mapping[str, Instance]
    prices: Mapping[str, Price]
    images: tuple[FrameworkImage, ...]
    registries: Mapping[str, Registry]
    managed: ManagedCompiler
    tested_models: tuple[TestedModel, ...]
    lower_precision: LowerPrecision
    faults: FaultTable
    own_images: tuple[OwnImage, ...] = ()
    quotas: Mapping[tuple[str, bool], Quota] = field(default_factory=dict)
    absent_images: Mapping[str, str] = field(default_factory=dict)

    def instance(self, instance_type: str) -> Instance | None:
        """The instance type, None when it is not on file."""
        return self.instances.get(instance_type)

    def device_of(self, instance_type: str) -> str | None:
        """What such jobs train on, as classes of faults name it; None when it is not on file."""
        instance = self.instance(instance_type)
        if instance and instance.gpu:
            return f"cuda {instance.gpu.compute_capability}"
        return "cpu" if instance else None

    def overridden(self, better: FactOverrides) -> Facts:
        """These facts with a team's own in their place."""
        if not better.prices and not better.images:
            return self
        own = {
            kind: Price(kind, usd, "given", None, None, CONFIGURED)
            for kind, usd in better.prices.items()
        }
        return replace(
            self, prices={**self.prices, **own}, own_images=(*better.images, *self.own_images)
        )

    def price(self, instance_type: str) -> Price | None:
        """USD per hour of one instance, None when there is no price on file."""
        return self.prices.get(instance_type)

    def quota(self, instance_type: str, *, spot: bool = False) -> int | None:
        """Instances of a type that training jobs may use at once; None when it was never read."""
        return map_optional(self.quotas.get((instance_type, spot)), lambda one: one.instances)

    def image(
        self,
        framework: Framework,
        *,
        compiler: str,
        region: str,
        instance: Instance | None = None,
    ) -> Image:
        """The training image, the team's own first; without an instance the GPU variant."""
        gpu = instance is None or instance.gpus > 0
        key = (framework, compiler, region, gpu)
        if key not in self._images_by_key:
            own = self._own_image(framework, compiler, region)
            self._images_by_key[key] = own or self._published(framework, compiler, region, gpu)
        return self._images_by_key[key]

    def same_framework(
        self, framework: Framework, other: Framework, *, region: str, instance: Instance | None
    ) -> bool:
        """Whether both name the same versions: ``1.13`` comes to the image of ``1.13.1``."""
        if framework == other:
            return True
        first, second = (
            self.image(each, compiler="none", region=region, instance=instance).uri
            for each in (framework, other)
        )
        return bool(first) and first == second

    @cached_property
    def _images_by_key(self) -> dict[tuple[Framework, str, str, bool], Image]:
        """A cache: one check looks up the same few images again and again."""
        return {}

    def _own_image(self, framework: Framework, compiler: str, region: str) -> Image | None:
        """The team's own image of these versions in the region, None where it brings none.

        A compiler with images of its own is built into them; every other comes with the framework.
        """
        built_in = compiler if compiler_named(compiler).own_image else None
        uris = [
            row.uri
            for row in self.own_images
            if row.framework == framework.name
            and built_in == (row.compiler if compiler_named(row.compiler).own_image else None)
            and _same(framework.version, row.version)
            and _same(framework.transformers, row.transformers)
            and _same(framework.python, row.python)
        ]
        here = [uri for uri in uris if f".dkr.ecr.{region}." in uri]
        if here or not uris:
            return Image(here[0], source=CONFIGURED) if here else None
        text = f"your image {uris[0]} is not in {region}, and SageMaker pulls from there only"
        return _none(text, "region_unsupported", CROSS_REGION)

    def _published(self, framework: Framework, compiler: str, region: str, gpu: bool) -> Image:
        """AWS's image, unless a refresh has recorded that its registry lacks it."""
        image = native = self._framework_image(framework, region, gpu)
        fitting = [row for row in self.managed.images if row.fits(framework)]
        same = any(row.same_image for row in fitting)
        if compiler == self.managed.compiler or (same and not image.uri):
            image = self._compiler_image(framework, fitting, region)
            if same and image.uri and native.uri:
                image = native  # the compiler is inside: hyperparameters switch it on
        elif compiler_named(compiler).own_image:
            return _none(
                f"no image of {framework.name} {label(framework)} with {compiler} is on file"
            )
        if image.uri not in self.absent_images:
            return image
        text = f"{image.uri} was not in its registry on {self.absent_images[image.uri]}"
        return _none(text, source=ABSENT)

    def _framework_image(self, framework: Framework, region: str, gpu: bool) -> Image:
        """The newest image that matches what the workload names of the framework."""
        family = sorted((row for row in self.images if row.framework == framework.name), key=age)
        if not family:
            return _none(f"no image of framework {framework.name} is on file")
        same = [row for row in family if matches(framework.version, row.version)]
        fitting = [
            row
            for row in same
            if _agrees(framework.transformers, row.transformers)
            and _agrees(framework.python, row.python)
        ]
        if not fitting:  # name those of this version, else three older and three newer ones
            older = [row for row in family if parts(row.version) <= parts(framework.version)]
            near = same or [*older[-3:], *family[len(older) : len(older) + 3]]
            names = ", ".join(map(label, near[-6:]))
            return _none(f"no image of {framework.name} {label(framework)}; there are {names}")
        row = max(fitting, key=age)
        tag, kind = (row.gpu_tag, "GPU") if gpu else (row.cpu_tag, "CPU")
        if tag is None:
            return _none(f"{row.repository} {row.version} has no {kind} variant")
        uri = self.registries[row.registry].uri(region, row.repository, tag)
        if not uri:
            return _none(f"{row.repository} is not published in {region}", "region_unsupported")
        return Image(uri, patched_until=row.patched_until, source=row.source)

    def _compiler_image(
        self, framework: Framework, fitting: Sequence[CompilerImage], region: str
    ) -> Image:
        """The managed compiler's image for a framework in a region."""
        if not fitting:
            text = f"the managed compiler has no image of {framework.name} {label(framework)}"
            return _none(text)
        row = fitting[0]
        uri = self.registries[row.registry].uri(region, row.repository, row.tag)
        if not uri or region not in row.regions:
            text = f"{row.repository} {row.version} is not published in {region}"
            return _none(text, "region_unsupported")
        return Image(uri, source=row.source)

    def tested(
        self, framework: Framework, model: str, instance_type: str
    ) -> list[tuple[TestedModel, float]]:
        """Row and batch ratio of each test of this combination with both batches."""
        name = library(framework.kind)
        rows = [
            row
            for row in self.tested_models
            if row.model == model
            and row.instance_type == instance_type
            # ``Transformers 4.11.0 with PyTorch 1.9.0`` is 1.9.0 of PyTorch.
            and matches(framework.version, row.framework.partition(f"{name} ")[2])
        ]
        return with_known(rows, lambda row: row.batch_ratio)
