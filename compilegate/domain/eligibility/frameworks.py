"""Can this compiler read this framework, and is there an image of it?"""

from __future__ import annotations

from compilegate.domain.compilers import COMPILERS, compiler_named
from compilegate.domain.compilers.torch_compile import TORCH_COMPILE
from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.facts.images import Image
from compilegate.domain.facts.versions import parts
from compilegate.domain.reasons import Reason, block, info, warn
from compilegate.domain.workload.model import CONTROL_SUFFIX, Framework

KINDS = {"pytorch": "PyTorch"}
UNPROVEN_FAMILIES = ("custom", "diffusion")
LEVERS = {
    "xgboost": "tree_method=hist (with device=cuda on a GPU instance), distributed XGBoost over "
    "several instances, or LightGBM",
    "sklearn": "n_jobs, HistGradientBoosting in place of GradientBoosting, or XGBoost and "
    "LightGBM with histograms",
}
OTHER_LEVERS = "tree_method=hist for boosted trees, more cores, or a smaller search space"


def levers(framework: str) -> str:
    """What makes a job without a graph faster."""
    return LEVERS.get(framework, OTHER_LEVERS)


def no_graph_rule(context: Context) -> tuple[Reason, ...]:
    """Trees and classical models leave a graph compiler nothing to compile."""
    if context.has_graph or not context.compiled:
        return ()
    workload = context.workload
    name = context.framework.name
    what = name if name in LEVERS else f"a model of family {workload.model.family}"
    return (
        block(
            "framework_unsupported", context.framework_field("name"),
            f"{what} has no tensor graph for {context.compiler} to compile",
            fix=f"leave {context.compiler} off for this workload",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip


def compiler_rule(context: Context) -> tuple[Reason, ...]:
    """A compiler that is part of a framework needs that one, in a version that has it."""
    compiler, framework = compiler_named(context.compiler), context.framework
    if compiler is None or compiler.kind is None or not context.has_graph:
        return ()
    if framework.kind != compiler.kind:
        return (
            block(
                "framework_unsupported", context.framework_field("name"),
                f"{compiler.name} compiles {KINDS[compiler.kind]}, not {framework.name}",
                fix="for TensorFlow, tf.function(jit_compile=True), or the managed compiler, which "
                f"is {context.facts.managed.status}",
                source=compiler.source,
            ),
        )  # fmt: skip
    if compiler.since and parts(framework.version) < compiler.since:
        return (
            block(
                "version_unsupported", context.framework_field("version"),
                f"{KINDS[compiler.kind]} {framework.version} has no {compiler.title}",
                fix=f"move to PyTorch 2.x; a current image is {_newest(context)}",
                source=compiler.source,
            ),
        )  # fmt: skip
    return ()


def torch_compile_instead(context: Context) -> str | None:
    """How to name torch.compile as the other way; None where the job is not PyTorch's."""
    framework = context.workload.framework
    if not context.has_graph or not framework.name.endswith("pytorch"):
        return None
    old = parts(framework.version) < (COMPILERS[TORCH_COMPILE].since or ())
    return f"{TORCH_COMPILE} on PyTorch 2" if old else TORCH_COMPILE


def _newest(context: Context) -> str:
    rows = [row for row in context.facts.images if row.framework == context.framework.name]
    row = max(rows, key=lambda row: parts(row.version), default=None)
    if row is None:
        return "pytorch 2.x"
    extra = f" with transformers {row.transformers}" if row.transformers else ""
    return f"{row.framework} {row.version}{extra}"


def image_rule(context: Context) -> tuple[Reason, ...]:
    """The baseline and the candidate each need an image; the managed compiler's is asked apart."""
    baseline = _image(context, context.baseline.image, "framework.version", "the baseline")
    if context.managed or context.candidate.framework is None:
        return baseline
    own = _image(context, context.image, context.framework_field("version"), "the candidate")
    return tuple(dict.fromkeys((*baseline, *own)))


def _image(context: Context, image: Image, field: str, whose: str) -> tuple[Reason, ...]:
    if not context.has_graph and context.compiled:  # nothing would be started anyway
        return ()
    if image.uri is None:
        return (
            block(
                image.code, field, f"{image.why}: {whose} cannot run",
                fix="name a version and region that have an image, or your own image under "
                "facts.images",
                source=f"image facts as of {context.facts.as_of}",
            ),
        )  # fmt: skip
    if image.patched_until and image.patched_until < context.facts.as_of:
        framework = context.workload.framework if whose == "the baseline" else context.framework
        return (
            info(
                "image_unpatched", field,
                f"images of {framework.name} {framework.version} have had no "
                f"patches since {image.patched_until}",
                fix="plan the move to a patched version, and measure it as a separate change",
                source=image.source,
            ),
        )  # fmt: skip
    return ()


def change_rule(context: Context) -> tuple[Reason, ...]:
    """Another version beside another compiler: what each brings must be told apart."""
    own, base = context.candidate.framework, context.workload.framework
    if own is None or context.same_framework:
        return ()
    field, now, then = context.framework_field("version"), _named(base), _named(own)
    other_kind = own.kind != base.kind
    if other_kind and context.candidate.entry_point is None:
        return (
            block(
                "framework_unsupported", context.framework_field("name"),
                f"the script is for {base.name}, the candidate's image is {own.name}",
                fix="name a script for that framework as the candidate's entry_point",
                source=WORKLOAD_FILE,
            ),
        )  # fmt: skip
    message = f"the candidate runs on {then} instead of {now}"
    older = not other_kind and parts(own.version) < parts(base.version)
    fix = _told_apart(context, older=older)
    if older:
        return (info("framework_downgrade", field, message, fix=fix, source=WORKLOAD_FILE),)
    return (info("framework_change", field, message, fix=fix, source=WORKLOAD_FILE),)


def _told_apart(context: Context, *, older: bool) -> str:
    """What tells the version from the compiler: the plan's control, where it has one (arms.py)."""
    workload, control = context.workload, f"{context.candidate.name}{CONTROL_SUFFIX}"
    taken = any(one.name == control for one in workload.candidates)
    twin = (
        context.native_image.uri is not None and context.framework.kind == workload.framework.kind
    )
    if context.managed and twin and not taken:
        return (
            f"the trial's control {control}, the same version without the compiler, measures "
            f"what that {'step back costs' if older else 'version changes'} and what the "
            "compiler alone brings"
        )
    if older:
        return "the trial measures the older version as part of the candidate"
    if not context.compiled:
        return "none needed: it is measured like any other change"
    return (
        "version and compiler are measured as one bundle; for the version alone add a candidate "
        "that names the framework and no compiler"
    )


def _named(framework: Framework) -> str:
    extra = f" with transformers {framework.transformers}" if framework.transformers else ""
    return f"{framework.name} {framework.version}{extra}"


def family_rule(context: Context) -> tuple[Reason, ...]:
    """Where nothing speaks for a gain, measure before believing."""
    family = context.workload.model.family
    if not context.compiled or family not in UNPROVEN_FAMILIES:
        return ()
    return (
        warn(
            "family_unproven", "model.family",
            f"models of family {family} gain from compilation in some cases and lose in others",
            fix="measure it; the speed gate is cheap",
            source="the managed compiler's tested models list no diffusion or custom model",
        ),
    )  # fmt: skip
