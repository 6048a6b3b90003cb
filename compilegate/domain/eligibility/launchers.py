"""Is the job started on its GPUs in a way that image, framework and compiler support?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.eligibility.candidate_job import WORKLOAD_FILE, CandidateJob
from compilegate.domain.eligibility.managed import target_image
from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.facts.versions import parts
from compilegate.domain.reasons import Reason, block, warn

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
MANAGED_ONLY = "it exists in the managed compiler's images only"


def launcher_rule(job: CandidateJob) -> Iterator[Reason]:
    """The baseline's launcher, and the candidate's where its compiler has none of its own."""
    change = job.candidate
    changed = change.distribution or change.framework or change.instance_type
    for run in [job.baseline, job] if changed and not job.managed else [job.baseline]:
        for message, instead in _refusals(run):
            yield block(
                "distribution_unsupported", run.field("distribution"), "baseline", source=SOURCE,
                distribution=run.training.distribution, why=message, instead=instead,
            )  # fmt: skip


def _refusals(run: CandidateJob) -> Iterator[tuple[str, str]]:
    """What the job's launcher lacks, and which one to use instead."""
    framework, launcher, kind = run.framework, run.training.distribution, run.framework.kind
    version = parts(framework.version)
    if launcher in TORCH_LAUNCHERS and kind != "pytorch":
        yield f"{launcher} is a launcher of PyTorch, not of {framework.name}", "none"
    elif launcher in SMDISTRIBUTED and kind not in DATA_PARALLEL_UP_TO:
        yield f"SageMaker's libraries do not support {framework.name}", "none"
    # ``1.13`` may be 1.13.1, so only the digits that are written count.
    elif launcher == "torch_distributed" and version and version < TORCHRUN_SINCE[: len(version)]:
        yield f"torchrun needs PyTorch 1.13.1 or later, not {framework.version}", "pytorchddp"
    elif launcher == "torch_distributed" and run.instance is not None and not run.instance.gpus:
        yield f"torchrun starts a process per GPU, {run.training.instance_type} has none", "none"
    elif (
        launcher == "smp"
        and kind == "pytorch"
        and version >= MODEL_PARALLEL_2_SINCE
        and run.image().uri not in {image.uri for image in run.facts.own_images}
    ):
        yield (
            f"{framework.name} {framework.version}'s image lacks the model parallel library",
            "torch_distributed, or name the library's own image under facts.images",
        )
    # The PyTorch estimator makes pytorchddp the data parallel library's runner.
    elif launcher == "smddp" or (launcher == "pytorchddp" and framework.name == "pytorch"):
        yield from _data_parallel(run, types=launcher == "smddp")


def _data_parallel(run: CandidateJob, *, types: bool) -> Iterator[tuple[str, str]]:
    kind, instance_type = run.framework.kind, run.training.instance_type
    last = DATA_PARALLEL_UP_TO[kind]
    instead = "torch_distributed" if kind == "pytorch" else "none"
    if parts(run.framework.version)[: len(last)] > last:
        version = ".".join(str(number) for number in last)
        yield f"SageMaker's data parallel library supports {kind} up to {version}", instead
    elif types and run.instance is not None and instance_type not in DATA_PARALLEL_TYPES:
        yield (
            f"SageMaker's data parallel library does not support {instance_type}, only "
            "ml.p4d.24xlarge, ml.p4de.24xlarge and ml.p3dn.24xlarge",
            instead,
        )


def baseline_rule(job: CandidateJob) -> Iterator[Reason]:
    """``pytorchxla`` belongs to the managed compiler; a baseline cannot run under it."""
    if job.workload.training.distribution == "pytorchxla":
        yield block(
            "distribution_unsupported", "training.distribution", "pytorchxla",
            source=job.facts.managed.instance_families_source,
        )  # fmt: skip


def native_rule(job: CandidateJob) -> Iterator[Reason]:
    """Without the managed compiler, several GPUs need a distribution that is not XLA's."""
    if job.runs_managed:
        return
    if job.candidate.distribution == "pytorchxla":
        yield _unsupported(job, MANAGED_ONLY, "torch_distributed")
    elif (
        job.several_devices
        and job.framework.kind == "pytorch"
        and job.training.distribution == "none"
    ):
        yield warn(
            "distribution_missing", job.field("distribution"), "unused", source=WORKLOAD_FILE,
            devices=job.devices,
        )  # fmt: skip


def managed_rule(job: CandidateJob) -> Iterator[Reason]:
    """The managed compiler excludes SageMaker's libraries; each of its images has one launcher."""
    row, launcher = target_image(job), job.training.distribution
    if not job.runs_managed:
        return
    if launcher in SMDISTRIBUTED:
        why = "the managed compiler excludes SageMaker's distributed libraries"
        yield _unsupported(job, why, "pytorchxla or none")
    elif row is not None and row.multi_device == "pytorchxla":
        yield from _xla(job, row)
    elif row is not None and launcher != "none":
        how = "launcher script" if row.multi_device == "launcher" else "tf.distribute in the script"
        why = f"{row.framework} {row.version} uses several GPUs by {how}, and no distribution"
        yield _unsupported(job, why, "none")


def _xla(job: CandidateJob, row: CompilerImage) -> Iterator[Reason]:
    launcher = job.training.distribution
    if launcher == "none" and job.several_devices:
        yield block(
            "distribution_missing", job.field("distribution"), "pytorchxla", source=row.source,
        )  # fmt: skip
    elif launcher not in ("none", "pytorchxla"):
        why = f"{row.framework} {row.version} with the managed compiler accepts pytorchxla only"
        yield _unsupported(job, why, "pytorchxla" if job.several_devices else "none")


def _unsupported(job: CandidateJob, message: str, instead: str) -> Reason:
    return block(
        "distribution_unsupported", job.field("distribution"), "managed",
        source=job.facts.managed.instance_families_source, distribution=job.training.distribution,
        why=message, instead=instead,
    )  # fmt: skip
