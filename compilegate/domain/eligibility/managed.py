"""SageMaker Training Compiler: does its frozen matrix hold this job?"""

from __future__ import annotations

from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.reason import Reason, block, info, warn
from compilegate.domain.facts_images import CompilerImage
from compilegate.domain.versions import parts
from compilegate.domain.workload import MANAGED_COMPILER


def applies(context: Context) -> bool:
    """Whether the managed compiler is asked for on a job with a graph."""
    return context.compiler == MANAGED_COMPILER and context.has_graph


def fitting_image(context: Context) -> CompilerImage | None:
    """The matrix row of the workload's own versions."""
    rows = context.facts.managed.images
    return next((row for row in rows if row.fits(context.workload.framework)), None)


def target_image(context: Context) -> CompilerImage | None:
    """The fitting row, else the framework's newest: what the job would have to become."""
    own = [
        row
        for row in context.facts.managed.images
        if row.framework == context.workload.framework.name
    ]
    newest = max(own, key=lambda row: parts(row.version), default=None)
    return fitting_image(context) or newest


def version_rule(context: Context) -> tuple[Reason, ...]:
    """Framework, versions and Python must be one row of the matrix, exactly."""
    if not applies(context) or fitting_image(context):
        return ()
    framework = context.workload.framework
    rows = [row for row in context.facts.managed.images if row.framework == framework.name]
    if not rows:
        return (
            block(
                "framework_unsupported", "framework.name",
                f"the managed compiler does not exist for {framework.name}",
                fix="for PyTorch, TensorFlow and Hugging Face only; " + _nearest(context),
                source=context.facts.managed.status_source,
            ),
        )  # fmt: skip
    newest = max(rows, key=lambda row: parts(row.version))
    asked = " ".join(
        [framework.name, framework.version]
        + ([f"with transformers {framework.transformers}"] if framework.transformers else [])
        + ([framework.python] if framework.python else [])
    )
    found = [
        block(
            "version_unsupported", "framework.version",
            f"the managed compiler has no image of {asked}; its last for {framework.name} is "
            f"{newest.version}, also where the SDK lets newer versions through",
            fix=_nearest(context), source=newest.source,
        )
    ]  # fmt: skip
    if parts(framework.version) > parts(newest.version):
        found.append(
            info(
                "framework_downgrade", "framework.version",
                f"using it means going back from {framework.version} to {newest.version}",
                fix="count what the older framework costs against what the compiler brings",
                source=context.facts.managed.status_source,
            )
        )  # fmt: skip
    return tuple(found)


def _kin(context: Context) -> list[CompilerImage]:
    """The rows of the workload's kind of framework; PyTorch's where it has none."""
    kin = "tensorflow" if context.workload.framework.name.endswith("tensorflow") else "pytorch"
    return [row for row in context.facts.managed.images if row.framework.endswith(kin)]


def _nearest(context: Context) -> str:
    """The newest row of the same framework, and where that has no twin the newest that has."""
    newest = target_image(context) or max(_kin(context), key=lambda row: parts(row.version))
    text = f"nearest: {newest.configuration()}"
    if newest.native_image is None:
        text += f" (no image without the compiler to compare with); {_paired(context)}"
    return text


def _paired(context: Context) -> str:
    """The newest row that has a same-version image without the compiler."""
    twins = [row for row in _kin(context) if row.native_image]
    row = max(twins, key=lambda row: parts(row.version))
    extra = "" if row.ships_transformers else ", transformers by requirements.txt"
    return f"nearest with a same-version baseline: {row.configuration()}{extra}"


def region_rule(context: Context) -> tuple[Reason, ...]:
    """The matrix has its own, smaller list of regions; none in China or GovCloud."""
    row = fitting_image(context) if applies(context) else None
    if row is None or context.region in row.regions:
        return ()
    return (
        block(
            "region_unsupported", "framework.version",
            f"{row.repository} {row.version} is not offered in {context.region}",
            fix=f"use one of its {len(row.regions)} regions, such as us-east-1, or torch_compile",
            source=row.source,
        ),
    )  # fmt: skip


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
            fix="use ml.g5, ml.g4dn or ml.p4d (the p3 types are gone), or torch_compile",
            source=managed.instance_families_source,
        ),
    )  # fmt: skip


def lifecycle_rule(context: Context) -> tuple[Reason, ...]:
    """Frozen and unpatched: always said. Without a twin there is nothing like for like."""
    if not applies(context):
        return ()
    managed = context.facts.managed
    found = [
        warn(
            "image_unpatched", context.compiler_field,
            f"the managed compiler is {managed.status}",
            fix="prefer torch_compile where it does as well; have security agree to the image",
            source=managed.status_source,
        )
    ]  # fmt: skip
    row = fitting_image(context)
    if row and row.native_image is None:
        found.append(
            warn(
                "no_same_version_baseline", "framework.version",
                f"there is no image of {row.framework} {row.version} without the compiler, so "
                "a comparison would mix compiler and framework version",
                fix=_paired(context), source=row.source,
            )
        )  # fmt: skip
    return tuple(found)
