"""Can this compiler read this framework, and is there an image of it?"""

from __future__ import annotations

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.reason import Reason, block, info, warn
from compilegate.domain.versions import parts
from compilegate.domain.workload import MANAGED_COMPILER

TORCH_COMPILE_SINCE = (2, 0)
TORCH_COMPILE_SOURCE = "PyTorch documentation: torch.compile is part of PyTorch from 2.0"
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
    name = workload.framework.name
    what = name if name in LEVERS else f"a model of family {workload.model.family}"
    return (
        block(
            "framework_unsupported", "framework.name",
            f"{what} trains no tensor graph that {context.compiler} could compile",
            fix=f"leave {context.compiler} off for this workload",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip


def torch_compile_rule(context: Context) -> tuple[Reason, ...]:
    """``torch_compile`` needs PyTorch 2."""
    if context.compiler != "torch_compile" or not context.has_graph:
        return ()
    framework = context.workload.framework
    if not framework.name.endswith("pytorch"):
        return (
            block(
                "framework_unsupported", "framework.name",
                f"torch_compile compiles PyTorch, not {framework.name}",
                fix="for TensorFlow, tf.function(jit_compile=True) or the managed compiler",
                source=TORCH_COMPILE_SOURCE,
            ),
        )  # fmt: skip
    if parts(framework.version) < TORCH_COMPILE_SINCE:
        return (
            block(
                "version_unsupported", "framework.version",
                f"PyTorch {framework.version} has no torch.compile",
                fix="move to PyTorch 2.x; a current image is pytorch 2.13.0",
                source=TORCH_COMPILE_SOURCE,
            ),
        )  # fmt: skip
    return ()


def image_rule(context: Context) -> tuple[Reason, ...]:
    """The baseline and the candidate each need an image; the managed compiler's is asked apart."""
    framework = context.workload.framework
    readable = context.has_graph and framework.name.endswith("pytorch")
    if context.compiler == MANAGED_COMPILER or (context.compiled and not readable):
        return ()
    image = context.facts.image(
        framework, compiler=context.compiler, region=context.region, instance=context.instance
    )
    if image.uri is None:
        return (
            block(
                image.code, "framework.version", image.why,
                fix="name a version and region that have an image",
                source=f"image facts as of {context.facts.as_of}",
            ),
        )  # fmt: skip
    if image.patched_until and image.patched_until < context.facts.as_of:
        return (
            info(
                "image_unpatched", "framework.version",
                f"images of {framework.name} {framework.version} get no patches "
                f"since {image.patched_until}",
                fix="plan the move to a patched version; it is a change of its own to measure",
                source=image.source,
            ),
        )  # fmt: skip
    return ()


def family_rule(context: Context) -> tuple[Reason, ...]:
    """Where nothing speaks for a gain, measure before believing."""
    family = context.workload.model.family
    if not context.compiled or family not in UNPROVEN_FAMILIES:
        return ()
    return (
        warn(
            "family_unproven", "model.family",
            f"models of family {family} gain from compilation in some cases and lose in others",
            fix="measure it; the speed gate costs little",
            source="the managed compiler's tested models list no diffusion or custom model",
        ),
    )  # fmt: skip
