"""Can this compiler read this framework, and is there an image of it?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.compilers import COMPILERS, compiler_named, has_own_image
from compilegate.domain.eligibility.candidate_job import WORKLOAD_FILE, CandidateJob
from compilegate.domain.facts.versions import age, label, parts
from compilegate.domain.reasons import Reason, block, info
from compilegate.domain.workload.model import CONTROL_SUFFIX, library

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
            "framework_unsupported", job.field("framework.name"), "no_graph", source=WORKLOAD_FILE,
            what=what, compiler=job.compiler,
        )  # fmt: skip


def compiler_rule(job: CandidateJob) -> Iterator[Reason]:
    """A compiler that is part of a framework needs that one, in a version that has it."""
    compiler, framework = compiler_named(job.compiler), job.framework
    if compiler is None or compiler.kind is None or not job.has_graph:
        return
    needed = library(compiler.kind)
    if framework.kind != compiler.kind:
        instead = compiler_instead(job)
        yield block(
            "framework_unsupported", job.field("framework.name"), "other_library",
            source=compiler.source, compiler=compiler.name, needed=needed, framework=framework.name,
            instead=instead, nothing=instead is None, status=job.facts.managed.status,
        )  # fmt: skip
    elif compiler.since and parts(framework.version) < compiler.since:
        rows = [row for row in job.facts.images if row.framework == framework.name]
        row = max(rows, key=age, default=None)
        series = f"{compiler.since[0]}.x"
        current = f"{row.framework} {label(row)}" if row else f"{compiler.kind} {series}"
        yield block(
            "version_unsupported", job.field("framework.version"), "framework",
            source=compiler.source, needed=needed, version=framework.version,
            compiler=compiler.title, series=series, current=current,
        )  # fmt: skip


def compiler_instead(job: CandidateJob) -> str | None:
    """The first compiler of the job's own library, as the alternative; None without any."""
    framework = job.workload.framework
    first = next((one for one in COMPILERS.values() if one.kind == framework.kind), None)
    if not job.has_graph or first is None:
        return None
    if first.since is None or parts(framework.version) >= first.since:
        return first.name
    return f"{first.name} on {library(framework.kind)} {first.since[0]}"


def image_rule(job: CandidateJob) -> Iterator[Reason]:
    """The baseline and the candidate each need an image; ``managed`` has rules for its own."""
    yield from _image(job, job.baseline, "the baseline")
    other = job.candidate.framework is not None or has_own_image(job.compiler)
    if other and not job.managed:
        yield from _image(job, job, "the candidate")


def _image(job: CandidateJob, run: CandidateJob, whose: str) -> Iterator[Reason]:
    image, field = run.image(), run.field("framework.version")
    if not job.has_graph and job.compiled:
        return  # the job would not start
    if image.uri is None:
        yield block(
            image.code, field, source=f"image facts as of {job.facts.as_of}",
            message=f"{image.why}: {whose} cannot run",
            fix="name a version and region that have an image, or your own image under "
            "facts.images",
        )  # fmt: skip
    elif image.patched_until and image.patched_until < job.facts.as_of:
        yield info(
            "image_unpatched", field, "framework", source=image.source,
            framework=run.framework.name, version=run.framework.version, until=image.patched_until,
        )  # fmt: skip


def change_rule(job: CandidateJob) -> Iterator[Reason]:
    """Another version beside another compiler: the effects of both must be separable."""
    own, base = job.candidate.framework, job.workload.framework
    if own is None or job.same_framework:
        return
    if own.kind != base.kind and job.candidate.entry_point is None:
        yield block(
            "framework_unsupported", job.field("framework.name"), "other_script",
            source=WORKLOAD_FILE, base=base.name, own=own.name,
        )  # fmt: skip
        return
    change = f"{own.name} {label(own)} instead of {base.name} {label(base)}"
    older = own.kind == base.kind and parts(own.version) < parts(base.version)
    yield info(
        "framework_downgrade" if older else "framework_change", job.field("framework.version"),
        source=WORKLOAD_FILE,
        message=f"the candidate runs on {change}",
        fix=_separation(job, older=older),
    )  # fmt: skip


def _separation(job: CandidateJob, *, older: bool) -> str:
    """What separates version and compiler: the plan's control, where it has one (arms.py)."""
    workload, control = job.workload, f"{job.candidate.name}{CONTROL_SUFFIX}"
    taken = any(one.name == control for one in workload.candidates)
    twin = job.image("none").uri is not None and job.framework.kind == workload.framework.kind
    if has_own_image(job.compiler) and twin and not taken:
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
