"""Do tensor shapes repeat from step to step? Each new one compiles again."""

from __future__ import annotations

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.reason import Reason, info, warn


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
                source="training-compiler-tips-pitfalls.md of the SageMaker developer guide",
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
    return tuple(found)
