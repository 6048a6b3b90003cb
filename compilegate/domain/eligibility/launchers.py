"""Is the job started on its GPUs in a way that image, framework and compiler support?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.managed import applies, target_image
from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.facts.versions import parts
from compilegate.domain.reasons import Reason, block, warn
from compilegate.domain.workload.model import Framework

SOURCE = "sagemaker 2.257.7 fw_utils.py, tables of supported distributions"
TORCH_LAUNCHERS = ("pytorchddp", "torch_distributed")
DATA_PARALLEL_TYPES = (
    "ml.p3.16xlarge", "ml.p3dn.24xlarge", "ml.p4d.24xlarge", "ml.p4de.24xlarge",
)  # fmt: skip
DATA_PARALLEL_UP_TO = {"pytorch": (2, 2, 0), "tensorflow": (2, 11, 0)}
TORCHRUN_SINCE = (1, 13, 1)
# Its second version, for PyTorch 2, comes in an image of its own: smdistributed-modelparallel.
MODEL_PARALLEL_2_SINCE = (2,)
SMDISTRIBUTED = ("smddp", "smp")


def launcher_rule(context: Context) -> tuple[Reason, ...]:
    """The baseline's launcher and the candidate's, wherever no compiler brings its own."""
    runs = [context.baseline]
    if not context.managed and (
        context.candidate.distribution
        or context.candidate.framework
        or context.candidate.instance_type
    ):
        runs.append(context)
    return tuple(dict.fromkeys(reason for run in runs for reason in _refused(run)))


def _refused(run: Context) -> Iterator[Reason]:
    framework, launcher = run.framework, run.distribution
    kind = framework.kind
    if launcher in TORCH_LAUNCHERS and kind != "pytorch":
        yield _block(run, f"{launcher} is a launcher of PyTorch, not of {framework.name}", "none")
    elif launcher in ("smddp", "smp") and kind not in DATA_PARALLEL_UP_TO:
        yield _block(run, f"SageMaker's libraries do not support {framework.name}", "none")
    elif launcher == "torch_distributed" and _older(framework, TORCHRUN_SINCE):
        yield _block(
            run, f"torchrun needs PyTorch 1.13.1 or later, not {framework.version}",
            "pytorchddp",
        )  # fmt: skip
    elif launcher == "torch_distributed" and run.instance is not None and not run.instance.gpus:
        yield _block(
            run, f"torchrun starts a process per GPU, {run.instance_type} has none", "none"
        )
    elif launcher == "smp" and kind == "pytorch" and _lacks_model_parallel(run):
        yield _block(
            run, f"{framework.name} {framework.version}'s image lacks the model parallel library",
            "torch_distributed, or name the library's own image under facts.images",
        )  # fmt: skip
    elif launcher == "smddp":
        yield from _data_parallel(run, kind)
    elif launcher == "pytorchddp" and framework.name == "pytorch":
        # The PyTorch estimator makes it the data parallel library's runner.
        yield from _outlived(run, kind)


def _lacks_model_parallel(run: Context) -> bool:
    own = {image.uri for image in run.facts.own_images}
    return parts(run.framework.version) >= MODEL_PARALLEL_2_SINCE and run.image.uri not in own


def _outlived(run: Context, kind: str) -> Iterator[Reason]:
    last = DATA_PARALLEL_UP_TO[kind]
    if parts(run.framework.version)[: len(last)] > last:
        newest = ".".join(str(number) for number in last)
        yield _block(
            run, f"SageMaker's data parallel library supports {kind} up to {newest}",
            "torch_distributed" if kind == "pytorch" else "none",
        )  # fmt: skip


def _data_parallel(run: Context, kind: str) -> Iterator[Reason]:
    outlived = tuple(_outlived(run, kind))
    yield from outlived
    if outlived:
        return
    if run.instance is not None and run.instance_type not in DATA_PARALLEL_TYPES:
        yield _block(
            run, f"SageMaker's data parallel library does not support {run.instance_type}, only "
            "ml.p4d.24xlarge, ml.p4de.24xlarge and ml.p3dn.24xlarge",
            "torch_distributed" if kind == "pytorch" else "none",
        )  # fmt: skip


def _older(framework: Framework, first: tuple[int, ...]) -> bool:
    """``1.13`` may well be 1.13.1, so only what is named counts."""
    named = parts(framework.version)
    return bool(named) and named < first[: len(named)]


def _block(run: Context, message: str, instead: str) -> Reason:
    return block(
        "distribution_unsupported", run.field("distribution"),
        f"{run.distribution} cannot be used: {message}",
        fix=f"set distribution: {instead}", source=SOURCE,
    )  # fmt: skip


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
            f"{devices} GPUs and no distribution: all but one per instance are idle, or each "
            "trains a separate model",
            fix="set training.distribution: torch_distributed, which likely saves more than a "
            "compiler",
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
                "without pytorchxla every GPU would train a separate model; the SDK only warns",
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
