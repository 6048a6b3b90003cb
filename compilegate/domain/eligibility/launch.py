"""Is the job launched on its GPUs in a way that the compiler knows?"""

from __future__ import annotations

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.managed import applies, fitting_image, target_image
from compilegate.domain.eligibility.reason import Reason, block, warn
from compilegate.domain.facts_images import CompilerImage

SMDISTRIBUTED = ("smddp", "smp")


def baseline_rule(context: Context) -> tuple[Reason, ...]:
    """``pytorchxla`` belongs to the managed compiler; a baseline cannot run under it."""
    if context.workload.training.distribution != "pytorchxla":
        return ()
    found = warn if applies(context) else block
    return (
        found(
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
    several = devices > 1 and context.workload.framework.name.endswith("pytorch")
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
    how = "a launcher script" if row.multi_device == "launcher" else "tf.distribute"
    return (_unsupported(context, f"{row.framework} {row.version} uses several GPUs by {how} "
                         "in the script, and no distribution", "none"),)  # fmt: skip


def _xla(context: Context, row: CompilerImage, *, several: bool) -> tuple[Reason, ...]:
    if context.distribution == "pytorchxla" or not several:
        return ()
    if context.distribution == "none":
        return (
            block(
                "distribution_missing", context.field("distribution"),
                "without pytorchxla every GPU would train a model of its own",
                fix="set distribution: pytorchxla on the candidate", source=row.source,
            ),
        )  # fmt: skip
    return (_unsupported(context, f"{row.framework} {row.version} with the managed compiler "
                         "accepts pytorchxla only", "pytorchxla"),)  # fmt: skip


def _unsupported(context: Context, message: str, instead: str) -> Reason:
    return block(
        "distribution_unsupported", context.field("distribution"),
        f"{context.distribution} cannot be used: {message}",
        fix=f"set distribution: {instead} on the candidate",
        source=context.facts.managed.instance_families_source,
    )  # fmt: skip


def script_rule(context: Context) -> tuple[Reason, ...]:
    """PyTorch scripts need XLA's calls; the Hugging Face Trainer makes them itself."""
    row = fitting_image(context) if applies(context) else None
    if row is None or row.framework.endswith("tensorflow"):
        return ()
    several = (context.devices or 1) > 1
    if row.framework == "huggingface-pytorch" and not several:
        return ()
    need = "torch_xla calls (xm.xla_device, xm.mark_step, xm.save)"
    if row.framework == "huggingface-pytorch":
        need = "_mp_fn(index)" if row.multi_device == "pytorchxla" else "a launcher script"
    return (
        warn(
            "script_needs_port", "training.entry_point",
            f"under the managed compiler the script needs {need}",
            fix="port the script, or use torch_compile, which needs one line",
            source="training-compiler-enable-pytorch.md of the SageMaker developer guide",
        ),
    )  # fmt: skip
