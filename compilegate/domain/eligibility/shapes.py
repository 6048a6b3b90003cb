"""Do tensor shapes repeat from step to step? Each new one compiles again."""

from __future__ import annotations

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.reasons import Reason, info, warn

PITFALLS = "training-compiler-tips-pitfalls.md of the SageMaker developer guide"
AUGMENTED_FAMILIES = ("vision", "diffusion")


def shapes_rule(context: Context) -> tuple[Reason, ...]:
    """Dynamic shapes and padding to the longest question the gain; a ragged batch costs a bit."""
    if not context.compiled or not context.has_graph:
        return ()
    shapes = context.workload.shapes
    reasons: list[Reason] = []
    if not shapes.static:
        reasons.append(
            warn(
                "dynamic_shapes", "shapes.static",
                "shapes change from step to step; every new one may recompile and use up "
                "the gain",
                fix="pad to a few fixed lengths and report non-padding tokens, or measure it as is",
                source=WORKLOAD_FILE,
            )
        )  # fmt: skip
    if shapes.padding == "longest":
        reasons.append(
            warn(
                "padding_longest", "shapes.padding",
                "padding to the longest sample of a batch gives almost every batch a new shape",
                fix="padding: max_length or a few buckets (more padding also slows the baseline)",
                source=PITFALLS,
            )
        )  # fmt: skip
    if not shapes.drop_last:
        reasons.append(
            info(
                "ragged_last_batch", "shapes.drop_last",
                "the last, smaller batch of an epoch has a different shape and recompiles",
                fix="drop_last: true in training",
                source=WORKLOAD_FILE,
            )
        )  # fmt: skip
    return (*reasons, *_unproven(context))


def _unproven(context: Context) -> tuple[Reason, ...]:
    """Where nothing but the team's own code keeps shapes equal and the GPU fed."""
    shapes = context.workload.shapes
    reasons: list[Reason] = []
    augmented = context.workload.model.family in AUGMENTED_FAMILIES
    if shapes.static and shapes.padding == "none" and augmented:
        reasons.append(
            warn(
                "shapes_by_augmentation", "shapes.padding",
                "only the augmentation (crop, resize) keeps the shapes equal",
                fix="check that every augmentation path ends in one size, evaluation included",
                source=WORKLOAD_FILE,
            )
        )  # fmt: skip
    if shapes.loader == "custom":
        reasons.append(
            warn(
                "custom_loader", "shapes.loader",
                "a custom data loader may be the bottleneck, and may change shapes unnoticed",
                fix="measure it and set profile.data_wait_fraction; the run counts recompilations",
                source=WORKLOAD_FILE,
            )
        )  # fmt: skip
    return tuple(reasons)
