"""Do tensor shapes repeat from step to step? Each new one compiles again."""

from __future__ import annotations

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.reason import Reason, info, warn

PITFALLS = "training-compiler-tips-pitfalls.md of the SageMaker developer guide"
AUGMENTED_FAMILIES = ("vision", "diffusion")


def shapes_rule(context: Context) -> tuple[Reason, ...]:
    """Dynamic shapes and padding to the longest question the gain; a ragged batch costs a bit."""
    if not context.compiled or not context.has_graph:
        return ()
    shapes = context.workload.shapes
    found: list[Reason] = []
    if not shapes.static:
        found.append(
            warn(
                "dynamic_shapes", "shapes.static",
                "shapes change from step to step; every new one may compile again until the "
                "gain is gone",
                fix="pad to a few fixed lengths and report non-padding tokens; or measure as it is",
                source=WORKLOAD_FILE,
            )
        )  # fmt: skip
    if shapes.padding == "longest":
        found.append(
            warn(
                "padding_longest", "shapes.padding",
                "padding to the longest of a batch makes a new shape for almost every batch",
                fix="padding: max_length or a few buckets; padding more also costs the baseline",
                source=PITFALLS,
            )
        )  # fmt: skip
    if not shapes.drop_last:
        found.append(
            info(
                "ragged_last_batch", "shapes.drop_last",
                "the last, smaller batch of an epoch has a shape of its own and compiles again",
                fix="drop_last: true in training",
                source=WORKLOAD_FILE,
            )
        )  # fmt: skip
    return (*found, *_unproven(context))


def _unproven(context: Context) -> tuple[Reason, ...]:
    """Where nothing but the team's own code keeps shapes equal and the GPU fed."""
    shapes, found = context.workload.shapes, []
    augmented = context.workload.model.family in AUGMENTED_FAMILIES
    if shapes.static and shapes.padding == "none" and augmented:
        found.append(
            warn(
                "shapes_by_augmentation", "shapes.padding",
                "nothing but the augmentation (crop, resize) keeps the shapes equal",
                fix="check that every path of it ends in one size, also in evaluation; measure it",
                source=WORKLOAD_FILE,
            )
        )  # fmt: skip
    if shapes.loader == "custom":
        found.append(
            warn(
                "custom_loader", "shapes.loader",
                "a loader of one's own may be the bottleneck, and may change shapes unnoticed",
                fix="measure it, and give profile.data_wait_fraction; the run counts recompiles",
                source=WORKLOAD_FILE,
            )
        )  # fmt: skip
    return tuple(found)
