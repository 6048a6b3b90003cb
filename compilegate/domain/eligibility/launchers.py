"""Which launchers the framework's own images know, by the SageMaker Python SDK's tables."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.reason import Reason, block
from compilegate.domain.facts.versions import parts
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
        yield _block(run, f"SageMaker's libraries do not know {framework.name}", "none")
    elif launcher == "torch_distributed" and _older(framework, TORCHRUN_SINCE):
        yield _block(
            run, f"torchrun is known from PyTorch 1.13.1 on, not to {framework.version}",
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
            run, f"SageMaker's data parallel library ends with {kind} {newest}",
            "torch_distributed" if kind == "pytorch" else "none",
        )  # fmt: skip


def _data_parallel(run: Context, kind: str) -> Iterator[Reason]:
    outlived = tuple(_outlived(run, kind))
    yield from outlived
    if outlived:
        return
    if run.instance is not None and run.instance_type not in DATA_PARALLEL_TYPES:
        yield _block(
            run, f"SageMaker's data parallel library refuses {run.instance_type}: it knows "
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
