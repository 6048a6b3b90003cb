"""Is the instance type available, does it have a GPU, and does that compute in this precision?"""

from __future__ import annotations

import difflib

from compilegate.domain.economics import amdahl_speedup
from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.managed import applies
from compilegate.domain.facts.model import Gpu
from compilegate.domain.formats import percent
from compilegate.domain.reasons import Reason, block, warn


def instance_rule(context: Context) -> tuple[Reason, ...]:
    """Unknown and retired types stand in the way, the baseline's as much as the candidate's."""
    reasons = _check(context, context.instance_type, context.field("instance_type"))
    base = context.workload.training.instance_type
    if base != context.instance_type:
        reasons += _check(context, base, "training.instance_type")
    return reasons


def _check(context: Context, instance_type: str, field: str) -> tuple[Reason, ...]:
    facts = context.facts
    instance = facts.instance(instance_type)
    if instance is None:
        near = difflib.get_close_matches(instance_type, facts.instances, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}? Otherwise " if near else ""
        return (
            block(
                "instance_unsupported", field,
                f"{instance_type or 'nothing'} is not among the {len(facts.instances)} instance "
                "types on file, so its GPUs are unknown",
                fix=f"{hint}use a type that is on file (compilegate facts)",
                source=f"instance facts as of {facts.as_of}",
            ),
        )  # fmt: skip
    if instance.retired:
        return (
            block(
                "instance_retired", field,
                f"{instance_type} is accepted by the SDK and the API, but no longer offered",
                fix="use a current type, such as ml.g5 or ml.p4d",
                source=instance.note or instance.source,
            ),
        )  # fmt: skip
    return ()


def cluster_rule(context: Context) -> tuple[Reason, ...]:
    """Several instance groups: the managed compiler refuses them, and no trial can share them."""
    groups = context.workload.training.instance_groups
    if not groups:
        return ()
    named = ", ".join(f"{one.instance_count} x {one.instance_type}" for one in groups)
    managed = context.facts.managed
    why = (
        "the managed compiler refuses clusters of several instance groups"
        if context.managed
        else "trials are measured on clusters of one instance type"
    )
    return (
        block(
            "heterogeneous_cluster", "training.instance_groups",
            f"the job runs on a heterogeneous cluster ({named}); {why}",
            fix="remove training.instance_groups and measure the part that trains, on "
            "training.instance_type alone",
            source=managed.instance_families_source if context.managed else "docs/planning.md",
        ),
    )  # fmt: skip


def gpu_rule(context: Context) -> tuple[Reason, ...]:
    """A compiler needs a GPU to compile for."""
    instance = context.instance
    if not context.compiled or not context.has_graph or instance is None or instance.gpus > 0:
        return ()
    return (
        block(
            "not_gpu", context.field("instance_type"),
            f"{context.instance_type} has no GPU; training compilers pay off on GPUs",
            fix="train on a GPU instance first (ml.g4dn.xlarge and ml.g5.xlarge are the "
            "smallest), then check again",
            source=instance.source,
        ),
    )  # fmt: skip


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
        families = sorted({
            f"ml.{one.family}" for one in context.facts.instances.values()
            if one.gpu is not None and one.gpu.fp8 and not one.retired
        })  # fmt: skip
        return (
            block(
                "precision_unsupported", where,
                f"{gpu.name} (compute capability {gpu.compute_capability}) has no fp8",
                fix=f"fp8 needs an L4, L40S, H100 or H200: {', '.join(families)}",
                source=gpu.source,
            ),
        )  # fmt: skip
    return ()


def _full_precision(context: Context, better: str, gpu: str) -> Reason:
    """What the lower precision itself and the compiler on top of it were published to gain."""
    published = context.facts.lower_precision
    waiting = min(1.0, sum(context.waits))
    low, high = (amdahl_speedup(1 - waiting, gain) for gain in (published.low, published.high))
    after = f", with the {percent(waiting, 2)} that a step waits" if waiting else ""
    return warn(
        "fp32_only", context.field("precision"),
        f"the job trains in fp32. Published jobs got {low:.2g} to {high:.2g} times as fast by "
        f"{better} alone{after} (on {published.measured_on}, so {published.confidence} confidence "
        f"for {gpu}), and torch.compile gained {percent(published.compiler_gain_lower, 2)} in it, "
        f"{percent(published.compiler_gain_fp32, 2)} in fp32 on an "
        f"{published.compiler_measured_on}",
        fix=f"add a candidate with precision: {better}; one change at a time",
        source=published.source,
    )  # fmt: skip
