"""Rules on a trial as a whole: its budget, its proof of quality, and jobs measured twice."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.economics import amdahl_speedup
from compilegate.domain.eligibility.candidate_job import WORKLOAD_FILE, CandidateJob
from compilegate.domain.eligibility.frameworks import LEVERS, OTHER_LEVERS, target_image
from compilegate.domain.eligibility.payoff import POWER
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import CompilerImage, Gpu, parts
from compilegate.domain.formats import money, percent
from compilegate.domain.judging.quality import ENOUGH_HISTORY
from compilegate.domain.planning.arms import Refusal, plan_arms
from compilegate.domain.planning.proof import plan_proof
from compilegate.domain.reasons import Reason, block, info, warn
from compilegate.domain.request.build import JobSite, quality_request
from compilegate.domain.workload.model import BASELINE, PREVIOUS, Workload
from compilegate.domain.workload.starts import earlier_models, keeps_lines

# Of the metric's level: what a margin may be before it is doubted.
WIDE = 0.5
REQUESTS = "the CreateTrainingJob requests that both would send (compilegate plan FILE --json)"


def no_graph_rule(job: CandidateJob) -> Iterator[Reason]:
    """A workload that no graph compiler can help, with what can."""
    framework, model = job.workload.framework.name, job.workload.model.name
    if not job.has_graph:
        yield block(
            "not_gpu", "framework.name", "no_graph", source=WORKLOAD_FILE, framework=framework,
            model=model, instance_type=job.workload.training.instance_type,
            instead=LEVERS.get(framework, OTHER_LEVERS),
        )  # fmt: skip


def budget_rule(tried: Sequence[CandidateJob], trial: float | None) -> Iterator[Reason]:
    """A trial whose price (``trial``, USD) is above the cap will be refused at planning."""
    cap = tried[0].workload.policy.max_trial_usd
    if trial is None or trial <= cap:
        return
    alone = [(one.trial_usd, one.candidate.name) for one in tried if one.trial_usd is not None]
    fewer = ""
    if len(tried) > 1 and alone:
        usd, name = min(alone)
        fewer = f", or name fewer candidates ({name} alone: {money(usd)})"
    yield warn(
        "trial_over_budget", "policy.max_trial_usd", source=WORKLOAD_FILE, trial=trial, cap=cap,
        fewer=fewer,
    )  # fmt: skip


def proof_rule(workload: Workload, *, candidates: int) -> Iterator[Reason]:
    """Whether quality can be proven, by the plan's own refusal, and what history is missing."""
    quality, proof = workload.quality, plan_proof(workload, candidates=candidates)
    if proof is not None and proof.refused is not None:
        yield warn(
            "underpowered", "quality.margin", source=POWER, fix=proof.refused.fix,
            why=proof.refused.message,
        )  # fmt: skip
        return
    share = quality.goal == "maximize" and all(0 <= value <= 1 for value in quality.history)
    # A share that may fall by half: most likely the margin is written in percent.
    if share and quality.history and quality.margin > WIDE * mean(quality.history):
        yield warn(
            "margin_wide", "quality.margin", source=WORKLOAD_FILE, margin=quality.margin,
            metric=quality.metric, mean=mean(quality.history),
        )  # fmt: skip
    if len(quality.history) < ENOUGH_HISTORY:
        yield info(
            "history_missing", "quality.history", source=WORKLOAD_FILE, runs=len(quality.history),
            ENOUGH_HISTORY=ENOUGH_HISTORY, metric=quality.metric,
        )  # fmt: skip


def same_job_rule(job: CandidateJob, others: Sequence[CandidateJob]) -> Iterator[Reason]:
    """A setting may have two names: the same job twice would be measured twice."""
    if job.index is None:
        return
    for other in others:
        if _always_differ(job) == _always_differ(other) and _request(job) == _request(other):
            twin = "the baseline" if other.candidate.name == BASELINE else other.candidate.name
            yield block("same_job", f"candidates[{job.index}]", source=REQUESTS, twin=twin)
            return


def _always_differ(job: CandidateJob) -> tuple[Any, ...]:
    """What always makes a difference in a request; a quick comparison before the requests'."""
    training = replace(job.training, distribution="")
    return training, job.compiler, job.candidate.compile_mode


def _request(job: CandidateJob) -> dict[str, Any] | object:
    """The request of a full run under a common name; equal to nothing where there is none."""
    change = job.candidate
    changes = () if change.name == BASELINE else (change,)
    arms = plan_arms(job.workload, changes, job.facts, region=job.region)
    if isinstance(arms, Refusal):
        return object()
    arm = replace(arms[len(changes)], name=BASELINE)
    site = JobSite(stage="", bucket="", region=job.region, job_roles="")
    where = site.context("", trial="", execution="", source_key="")
    try:
        return quality_request(job.workload, arm, run="", replicate=0, seed=0, context=where)
    except InvalidInputError:
        return object()


# Is it said what a run starts from, and what does it mean for a trial?

FIELD = "training.starts_from"


def start_rule(workload: Workload) -> Iterator[Reason]:
    """Runs that go on from earlier ones are no independent trials of a candidate."""
    training = workload.training
    if training.starts_from == PREVIOUS:
        yield warn("starts_from_previous", FIELD, source=WORKLOAD_FILE)
    elif keeps_lines(training):
        yield info("starts_from_own_line", FIELD, source=WORKLOAD_FILE)
    elif training.starts_from is None:
        unsaid = next(earlier_models(training), None)
        if unsaid is not None:
            yield warn("start_unsaid", unsaid, source=WORKLOAD_FILE, unsaid=unsaid)


# Do instances and GPUs support the job?


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


# Is the job started on its GPUs in a way that image, framework and compiler support?

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
