"""Does the GPU compute in this precision, and is a cheaper lever left unused?"""

from __future__ import annotations

from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.managed import applies
from compilegate.domain.eligibility.reason import Reason, block, warn


def precision_rule(context: Context) -> tuple[Reason, ...]:
    """fp8 only where the GPU has it; bf16 and tf32 are emulated or ignored on older GPUs."""
    instance, precision = context.instance, context.precision
    if instance is None or instance.gpu is None:
        return ()
    gpu, where = instance.gpu, context.field("precision")
    if precision == "fp8" and not gpu.fp8:
        return (
            block(
                "precision_unsupported", where,
                f"{gpu.name} (compute capability {gpu.compute_capability}) has no fp8",
                fix="fp8 needs an L4, L40S, H100 or H200: ml.g6, ml.g6e, ml.p5",
                source=gpu.source,
            ),
        )  # fmt: skip
    if precision == "fp8" and applies(context):
        return (
            block(
                "precision_unsupported", where, "the managed compiler's images predate fp8",
                fix="fp16 with the managed compiler, or fp8 without it",
                source=context.facts.managed.status_source,
            ),
        )  # fmt: skip
    if precision in ("bf16", "tf32") and not gpu.bf16:
        return (
            warn(
                "precision_unsupported", where,
                f"{gpu.name} (compute capability {gpu.compute_capability}) does not compute "
                f"{precision} in hardware",
                fix="use fp16 there",
                source=gpu.source,
            ),
        )  # fmt: skip
    return _full_precision(context, "bf16" if gpu.bf16 else "fp16", gpu.source)


def _full_precision(context: Context, better: str, source: str) -> tuple[Reason, ...]:
    if context.precision != "fp32" or not context.compiled or not context.has_graph:
        return ()
    return (
        warn(
            "fp32_only", context.field("precision"),
            f"the job trains in fp32; {better} uses the GPU's tensor cores and often gains more "
            "than a compiler, and compilers gain more on top of it",
            fix=f"add a candidate with precision: {better}; one change at a time",
            source=source,
        ),
    )  # fmt: skip
