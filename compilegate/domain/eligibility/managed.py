"""SageMaker Training Compiler: does its frozen support matrix include this job?"""

from __future__ import annotations

from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.frameworks import torch_compile_instead
from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.facts.versions import matches, parts
from compilegate.domain.reasons import Reason, block, info, warn
from compilegate.domain.workload.model import Framework

# A line to copy, indented, must fit a terminal of 80 columns.
LONGEST = 64


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
    reasons = [
        block(
            "version_unsupported", context.framework_field("version"),
            f"the managed compiler has no image of {_asked(framework)}; its last for "
            f"{framework.name} is {_row_named(newest)}, also where the SDK lets newer ones through",
            fix=nearest(context), source=newest.source,
        )
    ]  # fmt: skip
    if context.candidate.framework is None and parts(framework.version) > parts(newest.version):
        reasons.append(
            info(
                "framework_downgrade", context.framework_field("version"),
                f"using it means going back from {framework.version} to {newest.version}",
                fix="count what the older framework costs against what the compiler brings",
                source=context.facts.managed.status_source,
            )
        )  # fmt: skip
    return tuple(reasons)


def _asked(framework: Framework) -> str:
    extra = f" with transformers {framework.transformers}" if framework.transformers else ""
    python = f" {framework.python}" if framework.python else ""
    return f"{framework.name} {framework.version}{extra}{python}"


def _row_named(row: CompilerImage) -> str:
    extra = f" with transformers {row.transformers}" if row.transformers else ""
    return f"{row.version}{extra} ({row.python})"


def _documented_only(context: Context) -> tuple[Reason, ...]:
    """TensorFlow's compiler is in the ordinary image, so that image must exist."""
    row, version = fitting_image(context), context.framework.version
    if row is None or not row.same_image:
        return ()
    shipped = [one.version for one in context.facts.images if one.framework == row.framework]
    if any(matches(version, one) for one in shipped):
        return ()
    near = [one for one in shipped if parts(one)[:2] == parts(version)[:2]]
    return (
        block(
            "version_unsupported", context.framework_field("version"),
            f"{row.framework} {version} is in the managed compiler's documentation, but in no "
            "table of existing images",
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
            f"the managed compiler does not support {instance.instance_type}, only {families}",
            fix=f"use ml.g5, ml.g4dn or ml.p4d (the p3 types are retired){_or(context)}",
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
    reasons = [
        warn(
            "image_unpatched", context.compiler_field,
            f"the managed compiler is {managed.status}",
            fix=f"{prefer}get security approval for the image",
            source=managed.status_source,
        )
    ]  # fmt: skip
    row = fitting_image(context) if applies(context) else None
    if row and row.native_image is None and context.native_image.uri is None:
        reasons.append(
            warn(
                "no_same_version_baseline", context.framework_field("version"),
                f"there is no image of {row.framework} {row.version} without the compiler, so "
                "a comparison mixes compiler and framework version",
                fix=paired(context), source=row.source,
            )
        )  # fmt: skip
    return tuple(reasons)


def nearest(context: Context) -> str:
    """The newest row of the same framework, and where that has no twin the newest that has."""
    kin = _kin(context)
    own = [row for row in kin if row.framework == context.framework.name]
    newest = max(own or kin, key=lambda row: parts(row.version))
    if newest.native_image is None:
        return (
            "nearest of the same framework, with no image without the compiler to compare with:"
            f"\n{_lines(newest, context)}\n{paired(context)}"
        )
    return f"nearest configuration for the candidate:\n{_lines(newest, context)}"


def paired(context: Context) -> str:
    """The newest row that has a same-version image without the compiler."""
    twins = [row for row in _kin(context) if row.native_image]
    row = max(twins, key=lambda row: parts(row.version))
    extra = ""
    if context.framework.transformers and row.transformers is None:
        extra = ", transformers by requirements.txt"
    return f"nearest with a same-version baseline{extra}:\n{_lines(row, context)}"


def _kin(context: Context) -> list[CompilerImage]:
    """The rows of the job's kind of framework; PyTorch's where it has none."""
    kin = "tensorflow" if context.framework.name.endswith("tensorflow") else "pytorch"
    return [row for row in context.facts.managed.images if row.framework.endswith(kin)]


def _lines(row: CompilerImage, context: Context) -> str:
    """What a candidate of this row would say, as YAML; short enough for a terminal."""
    named = [f'name: {row.framework}, version: "{row.version}"']
    named += [f'transformers: "{row.transformers}"'] if row.transformers else []
    named.append(f"python: {row.python}")
    several = (context.devices or 1) > 1
    launcher = "pytorchxla" if row.multi_device == "pytorchxla" and several else "none"
    lines = [f"framework: {{{', '.join(named)}}}"]
    if len(lines[0]) > LONGEST:
        lines = [f"framework: {{{named[0]},", f"            {', '.join(named[1:])}}}"]
    if launcher != context.workload.training.distribution:
        lines.append(f"distribution: {launcher}")
    return "\n".join(lines)
