"""What else changes with the batch: learning rate, number of steps, warm-up and memory."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from compilegate.domain.eligibility.candidate_job import PROFILE, WORKLOAD_FILE, CandidateJob
from compilegate.domain.eligibility.frameworks import compiler_instead
from compilegate.domain.planning.arm_plan import scaled_learning_rate
from compilegate.domain.reasons import Reason, block, info, warn

TESTED = "training-compiler-support.md of the SageMaker developer guide"
SCALING_SOURCE = "Goyal et al. 2017, linear scaling with gradual warm-up"
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
    devices, base_devices = job.devices, job.baseline.devices
    if devices is None or base_devices is None:
        return
    base, scaling = job.workload.training, job.candidate.learning_rate_scaling
    before, after = base.batch_size * base_devices, job.training.batch_size * devices
    if before == after:
        return
    change = f"the global batch goes from {before} to {after} samples"
    if scaling in ("linear", "sqrt"):
        rate = scaled_learning_rate(base.learning_rate, after / before, scaling)
        yield info(
            "learning_rate_warmup", job.field("learning_rate_scaling"), source=SCALING_SOURCE,
            change=change, learning_rate=base.learning_rate, rate=rate, scaling=scaling,
        )  # fmt: skip
        return
    keep, same = "keep the global batch", before / devices
    if devices != base_devices and same.is_integer():
        keep += f" with batch_size: {same:.0f}"
    yield warn(
        "learning_rate_unscaled", job.field("batch_size"),
        source=f"{WORKLOAD_FILE}; {SCALING_SOURCE}", change=change, keep=keep,
    )  # fmt: skip


def tested_rule(job: CandidateJob) -> Iterator[Reason]:
    """For some models the managed compiler fits a smaller batch than the framework alone."""
    model, where = job.workload.model.name, job.training.instance_type
    rows = job.facts.tested(job.framework, model, where) if job.runs_managed else []
    ratio, row = min(rows, key=itemgetter(0), default=(1.0, None))
    if row is None or ratio >= 1:
        return
    instead = compiler_instead(job)
    keep = "keep the batch size and watch peak memory"
    if job.training.batch_size > row.compiled_batch:
        keep = f"set batch_size: {row.compiled_batch} on the candidate, with learning_rate_scaling"
    length = f" at sequence length {row.sequence_length}" if row.sequence_length else ""
    yield warn(
        "batch_may_shrink", job.field("batch_size"), source=TESTED,
        fix=f"{keep}, or try {instead}" if instead else keep, model=row.model,
        instance_type=row.instance_type, length=length, compiled_batch=row.compiled_batch,
        native_batch=row.native_batch,
    )  # fmt: skip


def memory_rule(job: CandidateJob) -> Iterator[Reason]:
    """Whether the batch fits the GPU, judged by the baseline's peak memory.

    Weights and optimizer do not grow with the batch, so the peak times the batch's growth is an
    upper bound, and the peak itself a lower one for a batch no smaller.
    """
    profile, instance = job.workload.profile, job.instance
    peak = None if profile is None else profile.peak_memory_gib
    memory = None if instance is None else instance.gpu_memory_gib
    own, base = job.training, job.workload.training
    width, base_width = WIDTHS[own.precision], WIDTHS[base.precision]
    if peak is None or memory is None or instance is None or width > base_width:
        return
    growth, source = own.batch_size / base.batch_size, f"{PROFILE}; {instance.source}"
    if growth >= 1 and peak > memory and width == base_width:
        yield block(
            "memory_headroom", job.field("instance_type"), "too_small", source=source, peak=peak,
            memory=memory, instance_type=instance.instance_type,
        )  # fmt: skip
    elif peak * max(growth, 1.0) > memory:
        yield warn(
            "memory_headroom", job.field("batch_size"), "may_be_too_small", source=source,
            batch_size=own.batch_size, grown=peak * max(growth, 1.0),
            instance_type=instance.instance_type, memory=memory, peak=peak,
            fitting=int(base.batch_size * memory / peak),
        )  # fmt: skip


def step_count_rule(job: CandidateJob) -> Iterator[Reason]:
    """The same number of larger steps is a longer run, or a longer warm-up."""
    growth = _growth(job)
    own, base = job.candidate.hyperparameters or {}, job.workload.training.hyperparameters
    if growth is None or growth == 1:
        return
    for name, code in COUNTS_OF_STEPS.items():
        count = _count(base.get(name))
        ignored = name == "steps" and _count(base.get("epochs"))  # as this project's scripts do
        if name not in own and count and not ignored:
            yield warn(
                code, job.field("batch_size"), source=WORKLOAD_FILE, name=name, count=count,
                growth=growth, fewer=max(1, round(count / growth)),
            )  # fmt: skip


def _growth(job: CandidateJob) -> float | None:
    """Samples of a step, the candidate's over the baseline's; None where devices are unknown."""

    def samples(run: CandidateJob) -> int | None:
        added = _count(run.training.hyperparameters.get(ACCUMULATION)) or 1
        return None if run.devices is None else run.training.batch_size * run.devices * added

    after, before = samples(job), samples(job.baseline)
    return None if after is None or before is None else after / before


def _count(value: Any) -> int:
    """A whole number above 0, however it is written; 0 where it is not one."""
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0
    return int(number) if number > 0 and number.is_integer() else 0
