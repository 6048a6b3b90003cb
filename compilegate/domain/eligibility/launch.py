"""Is the job launched on its GPUs in a way that the compiler knows?"""

from __future__ import annotations

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.managed import applies, target_image
from compilegate.domain.eligibility.reason import Reason, block, warn
from compilegate.domain.facts.images import CompilerImage

SMDISTRIBUTED = ("smddp", "smp")


def baseline_rule(context: Context) -> tuple[Reason, ...]:
    """``pytorchxla`` belongs to the managed compiler; a baseline cannot run under it."""
    if context.workload.training.distribution != "pytorchxla":
        return ()
    return (
        block(
            "distribution_unsupported", "training.distribution",
            "the baseline cannot run under pytorchxla, which exists in the managed compiler's "
            "images only",
            fix="set training.distribution: torch_distributed, and distribution: pytorchxla on "
            "the candidate that uses the managed compiler",
            source=context.facts.managed.instance_families_source,
        ),
    )  # fmt: skip


def native_rule(context: Context) -> tuple[Reason, ...]:
    """Without the managed compiler, several GPUs need a distribution that is not XLA's."""
    if applies(context):
        return ()
    if context.candidate.distribution == "pytorchxla":
        return (_unsupported(context, "it exists in the managed compiler's images only",
                             "torch_distributed"),)  # fmt: skip
    devices = context.devices or 1
    several = devices > 1 and context.framework.name.endswith("pytorch")
    if not several or context.distribution != "none":
        return ()
    return (
        warn(
            "distribution_missing", context.field("distribution"),
            f"{devices} GPUs and no distribution: all but one per instance idle, or each trains "
            "a model of its own",
            fix="set training.distribution: torch_distributed; likely worth more than a compiler",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip


def managed_rule(context: Context) -> tuple[Reason, ...]:
    """The managed compiler excludes SageMaker's libraries; each row knows one launcher."""
    if not applies(context):
        return ()
    if context.distribution in SMDISTRIBUTED:
        return (_unsupported(context, "the managed compiler excludes SageMaker's distributed "
                             "libraries", "pytorchxla or none"),)  # fmt: skip
    row = target_image(context)
    return () if row is None else _row_rule(context, row)


def _row_rule(context: Context, row: CompilerImage) -> tuple[Reason, ...]:
    if row.multi_device == "pytorchxla":
        return _xla(context, row, several=(context.devices or 1) > 1)
    if context.distribution == "none":
        return ()
    how = "a launcher script" if row.multi_device == "launcher" else "tf.distribute in the script"
    return (_unsupported(context, f"{row.framework} {row.version} uses several GPUs by "
                         f"{how}, and no distribution", "none"),)  # fmt: skip


def _xla(context: Context, row: CompilerImage, *, several: bool) -> tuple[Reason, ...]:
    if context.distribution == "pytorchxla":
        return ()
    if context.distribution == "none":
        if not several:
            return ()
        return (
            block(
                "distribution_missing", context.field("distribution"),
                "without pytorchxla every GPU would train a model of its own; the SDK warns at "
                "most",
                fix="set distribution: pytorchxla on the candidate", source=row.source,
            ),
        )  # fmt: skip
    why = f"{row.framework} {row.version} with the managed compiler accepts pytorchxla only"
    return (_unsupported(context, why, "pytorchxla" if several else "none"),)


def _unsupported(context: Context, message: str, instead: str) -> Reason:
    return block(
        "distribution_unsupported", context.field("distribution"),
        f"{context.distribution} cannot be used: {message}",
        fix=f"set distribution: {instead} on the candidate",
        source=context.facts.managed.instance_families_source,
    )  # fmt: skip
