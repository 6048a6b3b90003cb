"""What else changes with the batch: learning rate, number of steps, warm-up and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compilegate.domain.eligibility.context import PROFILE, WORKLOAD_FILE, Context
from compilegate.domain.eligibility.frameworks import torch_compile_instead
from compilegate.domain.eligibility.managed import applies
from compilegate.domain.formats import significant
from compilegate.domain.planning.arm_plan import scaled_learning_rate
from compilegate.domain.reasons import Reason, block, info, warn

TESTED = "training-compiler-support.md of the SageMaker developer guide"
SCALING_SOURCE = "Goyal et al. 2017, linear scaling with gradual warm-up"
# Bytes of a number, to tell which precisions take more memory; masters and optimizer aside.
WIDTHS = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
WARM_UP = ("warmup_steps", "num_warmup_steps", "lr_warmup_steps", "warmup_iters")
RUN_LENGTH = (
    "steps", "full_run_steps", "max_steps", "max_train_steps", "num_train_steps",
    "num_training_steps", "max_iters",
)  # fmt: skip
# Batches that one optimiser step adds up.
ACCUMULATION = "gradient_accumulation_steps"


def learning_rate_rule(context: Context) -> tuple[Reason, ...]:
    """Another global batch is another training recipe: the learning rate must follow, warmed up."""
    devices, base_devices = context.devices, context.baseline.devices
    if devices is None or base_devices is None:
        return ()
    base, scaling = context.workload.training, context.candidate.learning_rate_scaling
    before, after = base.batch_size * base_devices, context.batch_size * devices
    if before == after:
        return ()
    if scaling in ("linear", "sqrt"):
        rate = scaled_learning_rate(base.learning_rate, after / before, scaling)
        return (
            info(
                "learning_rate_warmup", context.field("learning_rate_scaling"),
                f"the global batch goes from {before} to {after} samples and the learning rate "
                f"from {base.learning_rate:g} to {rate:.3g} ({scaling})",
                fix="warm up the rate in the script over the first steps; use sqrt where linear "
                "diverges",
                source=SCALING_SOURCE,
            ),
        )  # fmt: skip
    fix = (
        "set learning_rate_scaling: linear or sqrt on the candidate with warm-up in the script, "
        "or keep the global batch"
    )
    if devices != base_devices:
        same = before / devices
        keep = f"batch_size: {same:.0f} keeps it" if same.is_integer() else "keep it near that"
        fix = f"{keep}; or set learning_rate_scaling: linear or sqrt, with warm-up in the script"
    return (
        warn(
            "learning_rate_unscaled", context.field("batch_size"),
            f"the global batch goes from {before} to {after} samples at the same learning rate",
            fix=fix, source=f"{WORKLOAD_FILE}; {SCALING_SOURCE}",
        ),
    )  # fmt: skip


def tested_rule(context: Context) -> tuple[Reason, ...]:
    """For some models the managed compiler fits a smaller batch than the framework alone."""
    if not applies(context):
        return ()
    model, where = context.workload.model.name, context.instance_type
    rows = context.facts.tested(context.framework, model, where)
    shrunk = [row for row in rows if row.compiled_batch < row.native_batch]
    if not shrunk:
        return ()
    row = min(shrunk, key=lambda row: row.compiled_batch / row.native_batch)
    instead = torch_compile_instead(context)
    keep = "keep the batch size and watch peak memory"
    if context.batch_size > row.compiled_batch:
        keep = f"set batch_size: {row.compiled_batch} on the candidate, with learning_rate_scaling"
    length = f" at sequence length {row.sequence_length}" if row.sequence_length else ""
    return (
        warn(
            "batch_may_shrink", context.field("batch_size"),
            f"the tested models list {row.model} on {row.instance_type}{length} with at most "
            f"{row.compiled_batch} samples per GPU compiled, {row.native_batch} without",
            fix=f"{keep}, or try {instead}" if instead else keep,
            source=TESTED,
        ),
    )  # fmt: skip


def memory_rule(context: Context) -> tuple[Reason, ...]:
    """Whether the batch fits the GPU, as far as the baseline's peak memory tells.

    Weights and optimizer do not grow with the batch, so the peak times the batch's growth is an
    upper bound, and the peak itself a lower one for a batch no smaller.
    """
    profile, instance = context.workload.profile, context.instance
    peak = None if profile is None else profile.peak_memory_gib
    memory = None if instance is None else instance.gpu_memory_gib
    base = context.workload.training
    wider = WIDTHS[context.precision] > WIDTHS[base.precision]
    if peak is None or memory is None or instance is None or wider:
        return ()
    growth = context.batch_size / base.batch_size
    narrower = WIDTHS[context.precision] < WIDTHS[base.precision]
    if growth >= 1 and peak > memory and not narrower:
        return (
            block(
                "memory_headroom", context.field("instance_type"),
                f"the job's peak of {peak:g} GiB per GPU does not fit the {memory:g} GiB of "
                f"{instance.instance_type}",
                fix="use a GPU with more memory, or a smaller batch_size",
                source=f"{PROFILE}; {instance.source}",
            ),
        )  # fmt: skip
    most = peak * max(growth, 1.0)
    if most <= memory:
        return ()
    sure = int(base.batch_size * memory / peak)
    return (
        warn(
            "memory_headroom", context.field("batch_size"),
            f"a batch of {context.batch_size} may take up to {significant(most)} GiB per GPU, and "
            f"{instance.instance_type} has {memory:g} (an upper bound: weights and optimizer, "
            f"part of today's {peak:g}, do not grow with the batch)",
            fix=f"batch_size up to {sure} fits by this bound; test larger ones",
            source=f"{PROFILE}; {instance.source}",
        ),
    )  # fmt: skip


def run_length_rule(context: Context) -> tuple[Reason, ...]:
    """The same number of larger steps is a longer run."""
    return tuple(
        warn(
            "run_length_unscaled", context.field("batch_size"),
            f"{name} stays {count} while a step holds {significant(growth)}x the samples: the "
            "candidate trains on as many times the data",
            fix=_fix(name, count, growth), source=WORKLOAD_FILE,
        )
        for name, count, growth in _unscaled(context, RUN_LENGTH)
    )  # fmt: skip


def warm_up_rule(context: Context) -> tuple[Reason, ...]:
    """The same number of larger steps is a longer warm-up."""
    return tuple(
        warn(
            "warmup_unscaled", context.field("batch_size"),
            f"{name} stays {count} while a step holds {significant(growth)}x the samples: the "
            "candidate warms up over as many times the data",
            fix=_fix(name, count, growth), source=WORKLOAD_FILE,
        )
        for name, count, growth in _unscaled(context, WARM_UP)
    )  # fmt: skip


def _unscaled(context: Context, names: Sequence[str]) -> Iterator[tuple[str, int, float]]:
    """(name, value, growth of a step) of each count that the candidate leaves as it is."""
    growth = _growth(context)
    if growth is None or growth == 1:
        return
    own = context.candidate.hyperparameters or {}
    base = context.workload.training.hyperparameters
    for name in names:
        count = _count(base.get(name))
        ignored = name == "steps" and _count(base.get("epochs"))  # as this project's scripts do
        if name not in own and count and not ignored:
            yield name, count, growth


def _count(value: Any) -> int:
    """A whole number above 0, however it is written; 0 where it is none."""
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0
    return int(number) if number > 0 and number.is_integer() else 0


def _fix(name: str, count: int, growth: float) -> str:
    return f"give the candidate hyperparameters: {{{name}: {max(1, round(count / growth))}}}"


def _growth(context: Context) -> float | None:
    """Samples of a step, the candidate's over the baseline's; None where devices are not known."""
    devices, before = context.devices, context.baseline.devices
    if devices is None or before is None:
        return None
    base = context.workload.training
    added = _count(context.hyperparameters.get(ACCUMULATION)) or 1
    added_before = _count(base.hyperparameters.get(ACCUMULATION)) or 1
    return context.batch_size * devices * added / (base.batch_size * before * added_before)
