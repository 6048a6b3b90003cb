"""What else changes with the batch: the learning rate, and what fits into memory."""

from __future__ import annotations

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.managed import applies
from compilegate.domain.eligibility.reason import Reason, warn


def learning_rate_rule(context: Context) -> tuple[Reason, ...]:
    """Another global batch with the same learning rate is another training recipe."""
    devices, base_devices = context.devices, context.base_devices
    if devices is None or base_devices is None:
        return ()
    base = context.workload.training
    per_device = context.candidate.batch_size or base.batch_size
    before, after = base.batch_size * base_devices, per_device * devices
    scaled = context.candidate.learning_rate_scaling in ("linear", "sqrt")
    # The learning rate follows the batch per device; a change of devices stays unscaled.
    if before == after or (scaled and devices == base_devices):
        return ()
    return (
        warn(
            "learning_rate_unscaled", context.field("batch_size"),
            f"the global batch goes from {before} to {after} samples at the same learning rate",
            fix="set learning_rate_scaling: linear or sqrt on the candidate with warm-up in the "
            "script, or keep the global batch",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip


def memory_rule(context: Context) -> tuple[Reason, ...]:
    """For some models the managed compiler fits a smaller batch than the framework alone."""
    if not applies(context):
        return ()
    workload = context.workload
    rows = context.facts.tested(workload.framework, workload.model.name, context.instance_type)
    shrunk = [row for row in rows if row.compiled_batch < row.native_batch]
    if not shrunk:
        return ()
    row = min(shrunk, key=lambda row: row.compiled_batch / row.native_batch)
    length = f" at sequence length {row.sequence_length}" if row.sequence_length else ""
    return (
        warn(
            "batch_may_shrink", context.field("batch_size"),
            f"the tested models list {row.model} on {row.instance_type}{length} with at most "
            f"{row.compiled_batch} samples per GPU compiled, {row.native_batch} without",
            fix="keep the batch size and watch peak memory, or try torch_compile",
            source="training-compiler-support.md of the SageMaker developer guide",
        ),
    )  # fmt: skip
