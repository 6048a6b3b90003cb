"""SageMaker Training Compiler: does its frozen matrix hold this job?"""

from __future__ import annotations

from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.frameworks import torch_compile_instead
from compilegate.domain.eligibility.nearest import nearest, paired
from compilegate.domain.eligibility.reason import Reason, block, info, warn
from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.facts.versions import matches, parts
from compilegate.domain.workload.model import Framework


def applies(context: Context) -> bool:
    """Whether the managed compiler is asked for on a job with a graph."""
    return context.managed and context.has_graph


def fitting_image(context: Context) -> CompilerImage | None:
    """The matrix row of the job's own versions."""
    rows = context.facts.managed.images
    return next((row for row in rows if row.fits(context.framework)), None)


def target_image(context: Context) -> CompilerImage | None:
    """The fitting row, else the framework's newest: what the job would have to become."""
    own = [row for row in context.facts.managed.images if row.framework == context.framework.name]
    newest = max(own, key=lambda row: parts(row.version), default=None)
    return fitting_image(context) or newest


def version_rule(context: Context) -> tuple[Reason, ...]:
    """Framework, versions and Python must be one row of the matrix, exactly."""
    if not applies(context) or _brought(context):
        return ()
    if fitting_image(context):
        return _documented_only(context)
    framework = context.framework
    rows = [row for row in context.facts.managed.images if row.framework == framework.name]
    if not rows:
        return (
            block(
                "framework_unsupported", context.framework_field("name"),
                f"the managed compiler does not exist for {framework.name}",
                fix=nearest(context),
                source=context.facts.managed.status_source,
            ),
        )  # fmt: skip
    newest = max(rows, key=lambda row: parts(row.version))
    found = [
        block(
            "version_unsupported", context.framework_field("version"),
            f"the managed compiler has no image of {_asked(framework)}; its last for "
            f"{framework.name} is {_row_named(newest)}, also where the SDK lets newer ones through",
            fix=nearest(context), source=newest.source,
        )
    ]  # fmt: skip
    if context.candidate.framework is None and parts(framework.version) > parts(newest.version):
        found.append(
            info(
                "framework_downgrade", context.framework_field("version"),
                f"using it means going back from {framework.version} to {newest.version}",
                fix="count what the older framework costs against what the compiler brings",
                source=context.facts.managed.status_source,
            )
        )  # fmt: skip
    return tuple(found)


def _asked(framework: Framework) -> str:
    extra = f" with transformers {framework.transformers}" if framework.transformers else ""
    python = f" {framework.python}" if framework.python else ""
    return f"{framework.name} {framework.version}{extra}{python}"


def _row_named(row: CompilerImage) -> str:
    extra = f" with transformers {row.transformers}" if row.transformers else ""
    return f"{row.version}{extra} ({row.python})"


def _documented_only(context: Context) -> tuple[Reason, ...]:
    """TensorFlow's compiler is in the ordinary image, so that image must exist."""
    row, asked = fitting_image(context), context.framework.version
    if row is None or not row.same_image:
        return ()
    shipped = [one.version for one in context.facts.images if one.framework == row.framework]
    if any(matches(asked, version) for version in shipped):
        return ()
    near = [version for version in shipped if parts(version)[:2] == parts(asked)[:2]]
    return (
        block(
            "version_unsupported", context.framework_field("version"),
            f"{row.framework} {asked} stands in the managed compiler's documentation, but in no "
            "table of images that exist",
            fix=f"version: \"{near[0]}\"" if near else nearest(context),
            source=row.source,
        ),
    )  # fmt: skip


def region_rule(context: Context) -> tuple[Reason, ...]:
    """The matrix has its own, smaller list of regions; none in China or GovCloud."""
    row = fitting_image(context) if applies(context) else None
    if row is None or context.region in row.regions or _brought(context):
        return ()
    return (
        block(
            "region_unsupported", context.framework_field("version"),
            f"{row.repository} {row.version} with the managed compiler is not offered in "
            f"{context.region}",
            fix=f"use one of its {len(row.regions)} regions, such as us-east-1{_or(context)}",
            source=row.source,
        ),
    )  # fmt: skip


def _brought(context: Context) -> bool:
    """Whether the team has its own image with the compiler in it."""
    return context.image.uri in {one.uri for one in context.facts.own_images}


def instance_rule(context: Context) -> tuple[Reason, ...]:
    """It compiles for five GPU families and refuses every other."""
    managed, instance = context.facts.managed, context.instance
    if not applies(context) or instance is None or not instance.gpus:
        return ()
    if instance.family in managed.instance_families:
        return ()
    families = ", ".join(managed.instance_families)
    return (
        block(
            "instance_unsupported", context.field("instance_type"),
            f"the managed compiler refuses {instance.instance_type}: it knows {families} only",
            fix=f"use ml.g5, ml.g4dn or ml.p4d (the p3 types are gone){_or(context)}",
            source=managed.instance_families_source,
        ),
    )  # fmt: skip


def _or(context: Context) -> str:
    instead = torch_compile_instead(context)
    return f", or {instead}" if instead else ""


def lifecycle_rule(context: Context) -> tuple[Reason, ...]:
    """Frozen and unpatched: always said. Without a twin there is nothing like for like."""
    if not context.managed:
        return ()
    managed, instead = context.facts.managed, torch_compile_instead(context)
    prefer = f"prefer {instead} where it does as well; " if instead else ""
    found = [
        warn(
            "image_unpatched", context.compiler_field,
            f"the managed compiler is {managed.status}",
            fix=f"{prefer}have security agree to the image",
            source=managed.status_source,
        )
    ]  # fmt: skip
    row = fitting_image(context) if applies(context) else None
    if row and row.native_image is None and context.native_image.uri is None:
        found.append(
            warn(
                "no_same_version_baseline", context.framework_field("version"),
                f"there is no image of {row.framework} {row.version} without the compiler, so "
                "a comparison mixes compiler and framework version",
                fix=paired(context), source=row.source,
            )
        )  # fmt: skip
    return tuple(found)
