"""Do instances and GPUs support the job?"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from compilegate.domain.economics import amdahl_speedup
from compilegate.domain.eligibility.candidate_job import CandidateJob
from compilegate.domain.facts.model import Gpu
from compilegate.domain.formats import percent
from compilegate.domain.reasons import Reason, block, warn


def instance_rule(job: CandidateJob) -> Iterator[Reason]:
    """Unknown and retired types block, of the baseline as well as of the candidate."""
    places = {job.training.instance_type: job.field("instance_type")}
    places.setdefault(job.workload.training.instance_type, "training.instance_type")
    for instance_type, field in places.items():
        instance = job.facts.instance(instance_type)
        if instance is None:
            near = difflib.get_close_matches(instance_type, job.facts.instances, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}? Otherwise " if near else ""
            yield block(
                "instance_unsupported", field,
                f"{instance_type or 'nothing'} is not among the {len(job.facts.instances)} "
                "instance types on file, so its GPUs are unknown",
                fix=f"{hint}use a type that is on file (compilegate facts)",
                source=f"instance facts as of {job.facts.as_of}",
            )  # fmt: skip
        elif instance.retired:
            yield block(
                "instance_retired", field,
                f"{instance_type} is accepted by the SDK and the API, but no longer offered",
                fix="use a current type, such as ml.g5 or ml.p4d",
                source=instance.note or instance.source,
            )  # fmt: skip


def instance_groups_rule(job: CandidateJob) -> Iterator[Reason]:
    """Several instance groups: the managed compiler refuses them, and no trial can share them."""
    groups = job.workload.training.instance_groups
    if not groups:
        return
    names = ", ".join(f"{one.instance_count} x {one.instance_type}" for one in groups)
    why, source = "trials are measured on clusters of one instance type", "docs/planning.md"
    if job.managed:
        why = "the managed compiler refuses clusters of several instance groups"
        source = job.facts.managed.instance_families_source
    yield block(
        "heterogeneous_cluster", "training.instance_groups",
        f"the job runs on a heterogeneous cluster ({names}); {why}",
        fix="remove training.instance_groups and measure the part that trains, on "
        "training.instance_type alone",
        source=source,
    )  # fmt: skip


def gpu_rule(job: CandidateJob) -> Iterator[Reason]:
    """A compiler needs a GPU to compile for."""
    if job.compiled and job.has_graph and job.instance is not None and not job.instance.gpus:
        yield block(
            "not_gpu", job.field("instance_type"),
            f"{job.training.instance_type} has no GPU; training compilers pay off on GPUs",
            fix="train on a GPU instance first (ml.g4dn.xlarge and ml.g5.xlarge are the "
            "smallest), then check again",
            source=job.instance.source,
        )  # fmt: skip


def precision_rule(job: CandidateJob) -> Iterator[Reason]:
    """fp8 only where the GPU has it; bf16 and tf32 are emulated or ignored on older GPUs."""
    gpu = None if job.instance is None else job.instance.gpu
    if gpu is None or not job.has_graph:
        return
    precision, field = job.training.precision, job.field("precision")
    name = f"{gpu.name} (compute capability {gpu.compute_capability})"
    if precision == "fp8" and job.runs_managed:
        yield block(
            "precision_unsupported", field, "the managed compiler's images predate fp8",
            fix="fp16 with the managed compiler, or fp8 without it",
            source=job.facts.managed.status_source,
        )  # fmt: skip
    elif precision == "fp8" and not gpu.fp8:
        families = sorted({
            f"ml.{one.family}" for one in job.facts.instances.values()
            if one.gpu is not None and one.gpu.fp8 and not one.retired
        })  # fmt: skip
        yield block(
            "precision_unsupported", field, f"{name} has no fp8",
            fix=f"fp8 needs an L4, L40S, H100 or H200: {', '.join(families)}", source=gpu.source,
        )  # fmt: skip
    elif precision in ("bf16", "tf32") and not gpu.bf16:
        yield warn(
            "precision_unsupported", field, f"{name} does not compute {precision} in hardware",
            fix="use fp16 there", source=gpu.source,
        )  # fmt: skip
    elif precision == "fp32" and job.compiled:
        yield _full_precision(job, gpu)


def _full_precision(job: CandidateJob, gpu: Gpu) -> Reason:
    """What the lower precision itself and the compiler on top of it were published to gain."""
    published, better = job.facts.lower_precision, "bf16" if gpu.bf16 else "fp16"
    waiting = min(1.0, sum(job.waits))
    low, high = (amdahl_speedup(1 - waiting, gain) for gain in (published.low, published.high))
    after = f", with the {percent(waiting, 2)} that a step waits" if waiting else ""
    return warn(
        "fp32_only", job.field("precision"),
        f"the job trains in fp32. Published jobs got {low:.2g} to {high:.2g} times as fast by "
        f"{better} alone{after} (on {published.measured_on}, so {published.confidence} confidence "
        f"for {gpu.name}), and torch.compile gained {percent(published.compiler_gain_lower, 2)} in "
        f"it, {percent(published.compiler_gain_fp32, 2)} in fp32 on an "
        f"{published.compiler_measured_on}",
        fix=f"add a candidate with precision: {better}; one change at a time",
        source=published.source,
    )  # fmt: skip
