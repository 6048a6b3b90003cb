"""What hardware, launcher, shapes, precision and batch of a job mean for it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from compilegate.domain.economics import amdahl_speedup
from compilegate.domain.eligibility.frameworks import compiler_instead, fitting_image, newest_image
from compilegate.domain.eligibility.job import CandidateJob
from compilegate.domain.facts import Gpu, parts
from compilegate.domain.optional import map_optional, with_known, without_none
from compilegate.domain.planning.arms import scaled_learning_rate
from compilegate.domain.reasons import Reason

AUGMENTED_FAMILIES = ("vision", "diffusion")
FAMILIES_OF_BLOCKS = ("transformer", "diffusion", "vision")


def instance_rule(job: CandidateJob) -> Iterator[Reason]:
    """Unknown and retired types block, of the baseline too; and a compiler needs a GPU."""
    places = {job.training.instance_type: job.field("instance_type")}
    places.setdefault(job.workload.training.instance_type, "training.instance_type")
    for instance_type, field in places.items():
        instance = job.facts.instance(instance_type)
        if instance is None:
            near = difflib.get_close_matches(instance_type, job.facts.instances, n=3, cutoff=0.5)
            yield job.finds(
                "instance_unsupported", "unknown", field=field,
                instance_type=instance_type or "nothing", types=len(job.facts.instances),
                hint=f"did you mean {', '.join(near)}? Otherwise " if near else "",
            )  # fmt: skip
        elif instance.retired:
            source = instance.note or instance.source
            yield job.finds(
                "instance_retired", field=field, source=source, instance_type=instance_type
            )
    groups = job.workload.training.instance_groups
    if groups:
        why, source = "trials are measured on clusters of one instance type", "docs/planning.md"
        if job.managed:
            why = "the managed compiler refuses clusters of several instance groups"
            source = job.facts.managed.instance_families_source
        names = ", ".join(f"{one.instance_count} x {one.instance_type}" for one in groups)
        yield job.finds("heterogeneous_cluster", source=source, names=names, why=why)
    if job.compiled and job.has_graph and job.instance is not None and not job.instance.gpus:
        yield job.finds("not_gpu", "job", source=job.instance.source)


# Is the job started on its GPUs in a way that image, framework and compiler support?

TORCH_LAUNCHERS = ("pytorchddp", "torch_distributed")
DATA_PARALLEL_TYPES = (
    "ml.p3.16xlarge", "ml.p3dn.24xlarge", "ml.p4d.24xlarge", "ml.p4de.24xlarge",
)  # fmt: skip
DATA_PARALLEL_UP_TO = {"pytorch": (2, 2, 0), "tensorflow": (2, 11, 0)}
TORCHRUN_SINCE = (1, 13, 1)
# Its second version, for PyTorch 2, comes in an image of its own: smdistributed-modelparallel.
MODEL_PARALLEL_2_SINCE = (2,)
SMDISTRIBUTED = ("smddp", "smp")


def launcher_rule(job: CandidateJob) -> Iterator[Reason]:
    """The launchers of baseline and candidate, and several GPUs that none of them uses."""
    managed = job.facts.managed.instance_families_source
    if job.workload.training.distribution == "pytorchxla":
        yield job.finds("distribution_unsupported", "pytorchxla", source=managed)
    if job.runs_managed:
        yield from _managed_launcher(job, managed)
    elif job.candidate.distribution == "pytorchxla":
        yield job.finds(
            "distribution_unsupported", "managed", source=managed, instead="torch_distributed",
            why="it exists in the managed compiler's images only",
        )  # fmt: skip
    elif (
        job.several_devices
        and job.framework.kind == "pytorch"
        and job.training.distribution == "none"
    ):
        yield job.finds("distribution_missing", "unused", devices=job.devices)
    change = job.candidate
    changed = change.distribution or change.framework or change.instance_type
    for run in [job.baseline, job] if changed and not job.managed else [job.baseline]:
        for why, instead in _refusals(run):
            yield run.finds(
                "distribution_unsupported", "baseline", field=run.field("distribution"), why=why,
                instead=instead,
            )  # fmt: skip


def _managed_launcher(job: CandidateJob, source: str) -> Iterator[Reason]:
    """The managed compiler excludes SageMaker's libraries; each of its images has one launcher."""
    row, launcher = fitting_image(job) or newest_image(job), job.training.distribution
    image = f"{row.framework} {row.version}" if row else ""
    why, instead = "", "none"
    if launcher in SMDISTRIBUTED:
        why, instead = (
            "the managed compiler excludes SageMaker's distributed libraries", "pytorchxla or none",
        )  # fmt: skip
    elif row and row.multi_device == "pytorchxla":
        if launcher == "none" and job.several_devices:
            yield job.finds("distribution_missing", "pytorchxla", source=row.source)
        elif launcher not in ("none", "pytorchxla"):
            why = f"{image} with the managed compiler accepts pytorchxla only"
            instead = "pytorchxla" if job.several_devices else "none"
    elif row and launcher != "none":
        how = "launcher script" if row.multi_device == "launcher" else "tf.distribute in the script"
        why = f"{image} uses several GPUs by {how}, and no distribution"
    if why:
        yield job.finds(
            "distribution_unsupported", "managed", source=source, why=why, instead=instead
        )


def _refusals(run: CandidateJob) -> Iterator[tuple[str, str]]:
    """What the job's launcher lacks, and which one to use instead."""
    framework, launcher, kind = run.framework, run.training.distribution, run.framework.kind
    version, instance_type = parts(framework.version), run.training.instance_type
    own = run.image().uri in {image.uri for image in run.facts.own_images}
    if launcher in TORCH_LAUNCHERS and kind != "pytorch":
        yield f"{launcher} is a launcher of PyTorch, not of {framework.name}", "none"
    elif launcher in SMDISTRIBUTED and kind not in DATA_PARALLEL_UP_TO:
        yield f"SageMaker's libraries do not support {framework.name}", "none"
    # ``1.13`` may be 1.13.1, so only the digits that are written count.
    elif launcher == "torch_distributed" and version and version < TORCHRUN_SINCE[: len(version)]:
        yield f"torchrun needs PyTorch 1.13.1 or later, not {framework.version}", "pytorchddp"
    elif launcher == "torch_distributed" and run.instance is not None and not run.instance.gpus:
        yield f"torchrun starts a process per GPU, {instance_type} has none", "none"
    elif launcher == "smp" and kind == "pytorch" and version >= MODEL_PARALLEL_2_SINCE and not own:
        yield (
            f"{framework.name} {framework.version}'s image lacks the model parallel library",
            "torch_distributed, or name the library's own image under facts.images",
        )
    # The PyTorch estimator makes pytorchddp the data parallel library's runner.
    elif launcher == "smddp" or (launcher == "pytorchddp" and framework.name == "pytorch"):
        last, instead = DATA_PARALLEL_UP_TO[kind], "none"
        if kind == "pytorch":
            instead = "torch_distributed"
        if version[: len(last)] > last:
            newest = ".".join(map(str, last))
            yield f"SageMaker's data parallel library supports {kind} up to {newest}", instead
        elif launcher == "smddp" and run.instance and instance_type not in DATA_PARALLEL_TYPES:
            yield (
                f"SageMaker's data parallel library does not support {instance_type}, only "
                "ml.p4d.24xlarge, ml.p4de.24xlarge and ml.p3dn.24xlarge",
                instead,
            )


def shapes_rule(job: CandidateJob) -> Iterator[Reason]:
    """Each new tensor shape compiles again, but for a compiler that is made for that."""
    shapes, moving = job.workload.shapes, job.descriptor.moving_shapes
    if not job.compiled or not job.has_graph:
        return
    if moving and shapes.static and shapes.padding != "longest":
        yield job.finds("shapes_fixed")
    if not shapes.static and not moving:
        yield job.finds("dynamic_shapes")
    if shapes.padding == "longest" and not moving:
        yield job.finds("padding_longest")
    if not shapes.drop_last and not moving:
        yield job.finds("ragged_last_batch")
    augmented = job.workload.model.family in AUGMENTED_FAMILIES
    if shapes.static and shapes.padding == "none" and augmented:
        yield job.finds("shapes_by_augmentation")
    if shapes.loader == "custom":
        yield job.finds("custom_loader")


def blocks_rule(job: CandidateJob) -> Iterator[Reason]:
    """Repeated blocks can be compiled alone only in a model that has them."""
    family = job.workload.model.family
    if job.descriptor.repeated_blocks and job.has_graph and family not in FAMILIES_OF_BLOCKS:
        yield job.finds("blocks_unknown")


def mode_rule(job: CandidateJob) -> Iterator[Reason]:
    """Two of torch.compile's modes have a price of their own."""
    mode = job.candidate.compile_mode
    if mode == "max-autotune":
        yield job.finds("compile_mode_cost", "max_autotune")
    elif mode == "reduce-overhead":
        situation = "memory" if job.workload.shapes.static else "shapes"
        yield job.finds("compile_mode_cost", situation)


def precision_rule(job: CandidateJob) -> Iterator[Reason]:
    """fp8 only where the GPU has it; bf16 and tf32 are emulated or ignored on older GPUs."""
    gpu = map_optional(job.instance, lambda one: one.gpu)
    if gpu is None or not job.has_graph:
        return
    precision, source = job.training.precision, gpu.source
    name = f"{gpu.name} (compute capability {gpu.compute_capability})"
    if precision == "fp8" and job.runs_managed:
        source = job.facts.managed.status_source
        yield job.finds("precision_unsupported", "managed", source=source)
    elif precision == "fp8" and not gpu.fp8:
        with_gpus = with_known(job.facts.instances.values(), lambda one: one.gpu)
        families = sorted({
            f"ml.{one.family}" for one, other in with_gpus if other.fp8 and not one.retired
        })  # fmt: skip
        yield job.finds(
            "precision_unsupported", "lacking", source=source, gpu=name,
            families=", ".join(families),
        )  # fmt: skip
    elif precision in ("bf16", "tf32") and not gpu.bf16:
        yield job.finds(
            "precision_unsupported", "emulated", source=source, gpu=name, precision=precision
        )
    elif precision == "fp32" and job.compiled:
        yield _full_precision(job, gpu)


def _full_precision(job: CandidateJob, gpu: Gpu) -> Reason:
    """What the lower precision itself and the compiler on top of it were published to gain."""
    published, waiting = job.facts.lower_precision, min(1.0, sum(job.waits))
    low, high = (amdahl_speedup(1 - waiting, gain) for gain in (published.low, published.high))
    return job.finds(
        "fp32_only", source=published.source, low=low, high=high,
        better="bf16" if gpu.bf16 else "fp16", waiting=waiting or None,
        measured_on=published.measured_on, confidence=published.confidence, gpu=gpu.name,
        gain=published.compiler_gain_lower, gain_fp32=published.compiler_gain_fp32,
        compiler_measured_on=published.compiler_measured_on,
    )  # fmt: skip


# What else changes with the batch: learning rate, number of steps, warm-up and memory.

# Bytes of a number, to tell which precisions take more memory; masters and optimizer aside.
WIDTHS = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
# Hyperparameters that count steps, each of more samples in a larger batch; the reason's code.
COUNTS_OF_STEPS = {
    **dict.fromkeys(
        ("steps", "full_run_steps", "max_steps", "max_train_steps", "num_train_steps",
         "num_training_steps", "max_iters"),
        "run_length_unscaled",
    ),
    **dict.fromkeys(
        ("warmup_steps", "num_warmup_steps", "lr_warmup_steps", "warmup_iters"),
        "warmup_unscaled",
    ),
}  # fmt: skip
# Batches that one optimizer step adds up.
ACCUMULATION = "gradient_accumulation_steps"


def learning_rate_rule(job: CandidateJob) -> Iterator[Reason]:
    """Another global batch is another training recipe: the learning rate must follow, warmed up."""
    both = without_none((job.devices, job.baseline.devices))
    if len(both) < 2:
        return
    devices, base_devices = both
    base, scaling = job.workload.training, job.candidate.learning_rate_scaling
    before, after = base.batch_size * base_devices, job.training.batch_size * devices
    if before == after:
        return
    change = f"the global batch goes from {before} to {after} samples"
    if scaling in ("linear", "sqrt"):
        rate = scaled_learning_rate(base.learning_rate, after / before, scaling)
        yield job.finds(
            "learning_rate_warmup", change=change, learning_rate=base.learning_rate, rate=rate,
            scaling=scaling,
        )  # fmt: skip
        return
    keep, same = "keep the global batch", before / devices
    if devices != base_devices and same.is_integer():
        keep += f" with batch_size: {same:.0f}"
    yield job.finds("learning_rate_unscaled", change=change, keep=keep)


def memory_rule(job: CandidateJob) -> Iterator[Reason]:
    """Whether the batch fits the GPU: by the tested models, and by the baseline's peak memory.

    For some models the managed compiler fits a smaller batch than the framework alone. Weights and
    optimizer do not grow with the batch, so the peak times the batch's growth is an upper bound,
    and the peak itself a lower one for a batch no smaller.
    """
    own, base, instance = job.training, job.workload.training, job.instance
    model, where = job.workload.model.name, own.instance_type
    rows = job.facts.tested(job.framework, model, where) if job.runs_managed else []
    smaller = [(row, ratio) for row, ratio in rows if ratio < 1]
    if smaller:
        row, _ = min(smaller, key=itemgetter(1))
        instead, keep = compiler_instead(job), "keep the batch size and watch peak memory"
        if own.batch_size > row.compiled_batch:
            keep = f"set batch_size: {row.compiled_batch} on the candidate, with "
            keep += "learning_rate_scaling"
        yield job.finds(
            "batch_may_shrink", fix=f"{keep}, or try {instead}" if instead else keep,
            sequence_length=row.sequence_length, compiled_batch=row.compiled_batch,
            native_batch=row.native_batch,
        )  # fmt: skip
    width, base_width = WIDTHS[own.precision], WIDTHS[base.precision]
    # An unknown peak fits any memory, and any peak fits a memory that is unknown.
    peak = job.workload.profile.peak_memory_gib or 0.0
    memory, source = math.inf, ""
    if instance and width <= base_width:
        memory, source = instance.gpu_memory_gib or math.inf, instance.source
    growth = own.batch_size / base.batch_size
    if growth >= 1 and peak > memory and width == base_width:
        yield job.finds("memory_headroom", "too_small", gpu_source=source, peak=peak, memory=memory)
    elif peak * max(growth, 1.0) > memory:
        yield job.finds(
            "memory_headroom", "may_be_too_small", gpu_source=source, batch_size=own.batch_size,
            grown=peak * max(growth, 1.0), memory=memory, peak=peak,
            fitting=int(base.batch_size * memory / peak),
        )  # fmt: skip


def step_count_rule(job: CandidateJob) -> Iterator[Reason]:
    """The same number of larger steps is a longer run, or a longer warm-up."""
    both = without_none((_samples(job), _samples(job.baseline)))
    if len(set(both)) < 2:
        return
    after, before = both
    own, base = job.candidate.hyperparameters, job.workload.training.hyperparameters
    growth = after / before
    for name, code in COUNTS_OF_STEPS.items():
        count = _count(base.get(name))
        ignored = name == "steps" and _count(base.get("epochs"))  # as this project's scripts do
        if name not in own and count and not ignored:
            fewer = max(1, round(count / growth))
            yield job.finds(code, name=name, count=count, growth=growth, fewer=fewer)


def _samples(run: CandidateJob) -> int | None:
    """Samples of a step; None where devices are unknown."""
    added = _count(run.training.hyperparameters.get(ACCUMULATION)) or 1
    each = run.training.batch_size * added
    return map_optional(run.devices, lambda devices: each * devices)


def _count(value: Any) -> int:
    """A whole number above 0, however it is written; 0 where it is not one."""
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0
    return int(number) if number > 0 and number.is_integer() else 0
