"""Does the GPU compute in this precision, and is a cheaper lever left unused?"""

from __future__ import annotations

from compilegate.domain.economics import amdahl_speedup
from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.managed import applies
from compilegate.domain.eligibility.reason import Reason, block, warn
from compilegate.domain.facts.model import Gpu


def precision_rule(context: Context) -> tuple[Reason, ...]:
    """fp8 only where the GPU has it; bf16 and tf32 are emulated or ignored on older GPUs."""
    instance, precision = context.instance, context.precision
    if instance is None or instance.gpu is None or not context.has_graph:
        return ()
    gpu, where = instance.gpu, context.field("precision")
    if precision == "fp8":
        return _fp8(context, gpu, where)
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
    if precision == "fp32" and context.compiled:
        return (_full_precision(context, "bf16" if gpu.bf16 else "fp16", gpu.name),)
    return ()


def _fp8(context: Context, gpu: Gpu, where: str) -> tuple[Reason, ...]:
    """fp8 needs an image younger than the managed compiler's, and a GPU that has it."""
    if applies(context):
        return (
            block(
                "precision_unsupported", where, "the managed compiler's images predate fp8",
                fix="fp16 with the managed compiler, or fp8 without it",
                source=context.facts.managed.status_source,
            ),
        )  # fmt: skip
    if not gpu.fp8:
        found = sorted({
            f"ml.{one.family}" for one in context.facts.instances.values()
            if one.gpu is not None and one.gpu.fp8 and not one.retired
        })  # fmt: skip
        return (
            block(
                "precision_unsupported", where,
                f"{gpu.name} (compute capability {gpu.compute_capability}) has no fp8",
                fix=f"fp8 needs an L4, L40S, H100 or H200: {', '.join(found)}",
                source=gpu.source,
            ),
        )  # fmt: skip
    return ()


def _full_precision(context: Context, better: str, gpu: str) -> Reason:
    """What the lower precision itself and the compiler on top of it were published to gain."""
    known = context.facts.lower_precision
    waiting = min(1.0, sum(context.waits))
    low, high = (amdahl_speedup(1 - waiting, gain) for gain in (known.low, known.high))
    after = f", with the {waiting:.0%} that a step waits" if waiting else ""
    return warn(
        "fp32_only", context.field("precision"),
        f"the job trains in fp32. Published jobs got {low:.2g} to {high:.2g} times as fast by "
        f"{better} alone{after} (on {known.measured_on}, so {known.confidence} confidence for "
        f"{gpu}), and torch.compile gained {known.compiler_gain_lower:.0%} in it, "
        f"{known.compiler_gain_fp32:.0%} in fp32 on an {known.compiler_measured_on}",
        fix=f"add a candidate with precision: {better}; one change at a time",
        source=known.source,
    )  # fmt: skip
