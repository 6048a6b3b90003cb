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
                "instance_unsupported", field, "unknown",
                source=f"instance facts as of {job.facts.as_of}",
                instance_type=instance_type or "nothing", types=len(job.facts.instances),
                hint=hint,
            )  # fmt: skip
        elif instance.retired:
            yield block(
                "instance_retired", field, source=instance.note or instance.source,
                instance_type=instance_type,
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
        "heterogeneous_cluster", "training.instance_groups", source=source, names=names, why=why,
    )  # fmt: skip


def gpu_rule(job: CandidateJob) -> Iterator[Reason]:
    """A compiler needs a GPU to compile for."""
    if job.compiled and job.has_graph and job.instance is not None and not job.instance.gpus:
        yield block(
            "not_gpu", job.field("instance_type"), "job", source=job.instance.source,
            instance_type=job.training.instance_type,
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
            "precision_unsupported", field, "managed", source=job.facts.managed.status_source,
        )  # fmt: skip
    elif precision == "fp8" and not gpu.fp8:
        families = sorted({
            f"ml.{one.family}" for one in job.facts.instances.values()
            if one.gpu is not None and one.gpu.fp8 and not one.retired
        })  # fmt: skip
        yield block(
            "precision_unsupported", field, "lacking", source=gpu.source, gpu=name,
            families=", ".join(families),
        )  # fmt: skip
    elif precision in ("bf16", "tf32") and not gpu.bf16:
        yield warn(
            "precision_unsupported", field, "emulated", source=gpu.source, gpu=name,
            precision=precision,
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
        "fp32_only", job.field("precision"), source=published.source, low=low, high=high,
        better=better, after=after, measured_on=published.measured_on,
        confidence=published.confidence, gpu=gpu.name, gain=published.compiler_gain_lower,
        gain_fp32=published.compiler_gain_fp32,
        compiler_measured_on=published.compiler_measured_on,
    )  # fmt: skip
