"""Can this compiler read this framework, and is there an image of it?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.compilers import COMPILERS, compiler_named
from compilegate.domain.compilers.torch_compile import TORCH_COMPILE
from compilegate.domain.eligibility.candidate_job import WORKLOAD_FILE, CandidateJob
from compilegate.domain.facts.versions import age, label, parts
from compilegate.domain.reasons import Reason, block, info
from compilegate.domain.workload.model import CONTROL_SUFFIX

KINDS = {"pytorch": "PyTorch"}
LEVERS = {
    "xgboost": "tree_method=hist (with device=cuda on a GPU instance), distributed XGBoost over "
    "several instances, or LightGBM",
    "sklearn": "n_jobs, HistGradientBoosting in place of GradientBoosting, or XGBoost and "
    "LightGBM with histograms",
}
OTHER_LEVERS = "tree_method=hist for boosted trees, more cores, or a smaller search space"


def no_graph_rule(job: CandidateJob) -> Iterator[Reason]:
    """Trees and classical models leave a graph compiler nothing to compile."""
    name = job.framework.name
    if job.compiled and not job.has_graph:
        what = name if name in LEVERS else f"a model of family {job.workload.model.family}"
        yield block(
            "framework_unsupported", job.field("framework.name"),
            f"{what} has no tensor graph for {job.compiler} to compile",
            fix=f"leave {job.compiler} off for this workload", source=WORKLOAD_FILE,
        )  # fmt: skip


def compiler_rule(job: CandidateJob) -> Iterator[Reason]:
    """A compiler that is part of a framework needs that one, in a version that has it."""
    compiler, framework = compiler_named(job.compiler), job.framework
    if compiler is None or compiler.kind is None or not job.has_graph:
        return
    if framework.kind != compiler.kind:
        yield block(
            "framework_unsupported", job.field("framework.name"),
            f"{compiler.name} compiles {KINDS[compiler.kind]}, not {framework.name}",
            fix="for TensorFlow, tf.function(jit_compile=True), or the managed compiler, which "
            f"is {job.facts.managed.status}",
            source=compiler.source,
        )  # fmt: skip
    elif compiler.since and parts(framework.version) < compiler.since:
        rows = [row for row in job.facts.images if row.framework == framework.name]
        row = max(rows, key=age, default=None)
        current = f"{row.framework} {label(row)}" if row else "pytorch 2.x"
        yield block(
            "version_unsupported", job.field("framework.version"),
            f"{KINDS[compiler.kind]} {framework.version} has no {compiler.title}",
            fix=f"move to PyTorch 2.x; a current image is {current}", source=compiler.source,
        )  # fmt: skip


def torch_compile_instead(job: CandidateJob) -> str | None:
    """How to name torch.compile as the alternative; None where the job is not PyTorch's."""
    framework = job.workload.framework
    if not job.has_graph or framework.kind != "pytorch":
        return None
    old = parts(framework.version) < (COMPILERS[TORCH_COMPILE].since or ())
    return f"{TORCH_COMPILE} on PyTorch 2" if old else TORCH_COMPILE


def image_rule(job: CandidateJob) -> Iterator[Reason]:
    """The baseline and the candidate each need an image; ``managed`` has rules for its own."""
    yield from _image(job, job.baseline, "the baseline")
    if job.candidate.framework is not None and not job.managed:
        yield from _image(job, job, "the candidate")


def _image(job: CandidateJob, run: CandidateJob, whose: str) -> Iterator[Reason]:
    image, field = run.image(), run.field("framework.version")
    if not job.has_graph and job.compiled:
        return  # the job would not start
    if image.uri is None:
        yield block(
            image.code, field, f"{image.why}: {whose} cannot run",
            fix="name a version and region that have an image, or your own image under "
            "facts.images",
            source=f"image facts as of {job.facts.as_of}",
        )  # fmt: skip
    elif image.patched_until and image.patched_until < job.facts.as_of:
        yield info(
            "image_unpatched", field,
            f"images of {run.framework.name} {run.framework.version} have had no patches since "
            f"{image.patched_until}",
            fix="plan the move to a patched version, and measure it as a separate change",
            source=image.source,
        )  # fmt: skip


def change_rule(job: CandidateJob) -> Iterator[Reason]:
    """Another version beside another compiler: the effects of both must be separable."""
    own, base = job.candidate.framework, job.workload.framework
    if own is None or job.same_framework:
        return
    if own.kind != base.kind and job.candidate.entry_point is None:
        yield block(
            "framework_unsupported", job.field("framework.name"),
            f"the script is for {base.name}, the candidate's image is {own.name}",
            fix="name a script for that framework as the candidate's entry_point",
            source=WORKLOAD_FILE,
        )  # fmt: skip
        return
    older = own.kind == base.kind and parts(own.version) < parts(base.version)
    yield info(
        "framework_downgrade" if older else "framework_change", job.field("framework.version"),
        f"the candidate runs on {own.name} {label(own)} instead of {base.name} {label(base)}",
        fix=_separation(job, older=older), source=WORKLOAD_FILE,
    )  # fmt: skip


def _separation(job: CandidateJob, *, older: bool) -> str:
    """What separates version and compiler: the plan's control, where it has one (arms.py)."""
    workload, control = job.workload, f"{job.candidate.name}{CONTROL_SUFFIX}"
    taken = any(one.name == control for one in workload.candidates)
    twin = job.image("none").uri is not None and job.framework.kind == workload.framework.kind
    if job.managed and twin and not taken:
        return (
            f"the trial's control {control}, the same version without the compiler, measures "
            f"what that {'step back costs' if older else 'version changes'} and what the "
            "compiler alone brings"
        )
    if older:
        return "the trial measures the older version as part of the candidate"
    if not job.compiled:
        return "none needed: it is measured like any other change"
    return (
        "version and compiler are measured as one bundle; for the version alone add a candidate "
        "that names the framework and no compiler"
    )
