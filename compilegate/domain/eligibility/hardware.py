"""Is there such an instance, can it still be had, and has it a GPU?"""

from __future__ import annotations

import difflib

from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.reason import Reason, block


def instance_rule(context: Context) -> tuple[Reason, ...]:
    """Unknown and retired types stand in the way, the baseline's as much as the candidate's."""
    found = _check(context, context.instance_type, context.field("instance_type"))
    base = context.workload.training.instance_type
    if base != context.instance_type:
        found += _check(context, base, "training.instance_type")
    return found


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
                "types on file, so nobody knows its GPUs",
                fix=f"{hint}use a type that is on file (compilegate facts)",
                source=f"instance facts as of {facts.as_of}",
            ),
        )  # fmt: skip
    if instance.retired:
        return (
            block(
                "instance_retired", field,
                f"{instance_type} is accepted by SDK and API, but is no longer offered",
                fix="move to a type that can be had, such as ml.g5 or ml.p4d",
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
            f"{context.instance_type} has no GPU; compilers for training are worth it on GPUs",
            fix="train on a GPU instance first (ml.g4dn.xlarge and ml.g5.xlarge are the "
            "smallest), then ask again",
            source=instance.source,
        ),
    )  # fmt: skip
