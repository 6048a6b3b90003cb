"""Which training image a framework, compiler and region get, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compilegate.domain.compilers import has_own_image
from compilegate.domain.facts.versions import age, label, matches, parts
from compilegate.domain.workload.model import Framework, OwnImage

CONFIGURED = "given in the workload file or cdk.json"
CROSS_REGION = (
    "CreateTrainingJob's answer to an image of another region, "
    "github.com/aws-samples/mlops-amazon-sagemaker/issues/9"
)


@dataclass(frozen=True)
class Image:
    """A training image's URI; ``uri`` is None with reason code and text in its place."""

    uri: str | None
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

    def uri(self, region: str, repository: str, tag: str) -> str | None:
        """The image's URI in a region, None where the images are not published."""
        account = self.accounts.get(region)
        if account is None:
            return None
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


def own_image(
    rows: Sequence[OwnImage], framework: Framework, *, compiler: str, region: str
) -> Image | None:
    """The team's own image of these versions in the region, None where it brings none.

    A compiler with images of its own is built into them; every other comes with the framework.
    """
    built_in = compiler if has_own_image(compiler) else None
    uris = [
        row.uri
        for row in rows
        if row.framework == framework.name
        and built_in == (row.compiler if has_own_image(row.compiler) else None)
        and _same(framework.version, row.version)
        and _same(framework.transformers, row.transformers)
        and _same(framework.python, row.python)
    ]
    if not uris:
        return None
    here = [uri for uri in uris if f".dkr.ecr.{region}." in uri]
    if here:
        return Image(here[0], source=CONFIGURED)
    text = f"your image {uris[0]} is not in {region}, and SageMaker pulls from there only"
    return Image(None, "region_unsupported", text, source=CROSS_REGION)


def framework_image(
    rows: Sequence[FrameworkImage],
    registries: Mapping[str, Registry],
    framework: Framework,
    region: str,
    gpu: bool,
) -> Image:
    """The newest image that matches what the workload names of the framework."""
    family = [row for row in rows if row.framework == framework.name]
    if not family:
        return _none(f"no image of framework {framework.name} is on file")
    fitting = [
        row
        for row in family
        if matches(framework.version, row.version)
        and _agrees(framework.transformers, row.transformers)
        and _agrees(framework.python, row.python)
    ]
    if not fitting:
        near = ", ".join(label(row) for row in _near(family, framework)[-6:])
        return _none(f"no image of {framework.name} {label(framework)}; there are {near}")
    row = max(fitting, key=age)
    tag = row.gpu_tag if gpu else row.cpu_tag
    if tag is None:
        return _none(f"{row.repository} {row.version} has no {'GPU' if gpu else 'CPU'} variant")
    uri = registries[row.registry].uri(region, row.repository, tag)
    if uri is None:
        return _none(f"{row.repository} is not published in {region}", "region_unsupported")
    return Image(uri, patched_until=row.patched_until, source=row.source)


def compiler_image(
    rows: Sequence[CompilerImage],
    registries: Mapping[str, Registry],
    framework: Framework,
    region: str,
) -> Image:
    """The managed compiler's image for a framework in a region."""
    row = next((row for row in rows if row.fits(framework)), None)
    if row is None:
        return _none(f"the managed compiler has no image of {framework.name} {label(framework)}")
    uri = registries[row.registry].uri(region, row.repository, row.tag)
    if uri is None or region not in row.regions:
        text = f"{row.repository} {row.version} is not published in {region}"
        return _none(text, "region_unsupported")
    return Image(uri, source=row.source)


def _none(why: str, code: str = "no_compiler_image") -> Image:
    return Image(None, code, why)


def _same(version: str | None, own: str | None) -> bool:
    """A team may leave out versions of its own image, or write 2.8 for 2.8.0."""
    return version is None or own is None or matches(version, own) or matches(own, version)


def _agrees(version: str | None, available: str | None) -> bool:
    return version is None or (available is not None and matches(version, available))


def _near(family: Sequence[FrameworkImage], framework: Framework) -> list[FrameworkImage]:
    """The images of this version, else three older and three newer ones."""
    ordered = sorted(family, key=age)
    older = [row for row in ordered if parts(row.version) <= parts(framework.version)]
    same = [row for row in family if matches(framework.version, row.version)]
    return same or [*older[-3:], *ordered[len(older) : len(older) + 3]]
