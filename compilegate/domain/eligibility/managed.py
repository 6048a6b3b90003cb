"""SageMaker Training Compiler: does its frozen support matrix include this job?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.eligibility.candidate_job import CandidateJob
from compilegate.domain.eligibility.frameworks import compiler_instead
from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.facts.versions import age, label, matches, parts
from compilegate.domain.reasons import Reason, block, info, warn

# A line to copy, indented, must fit a terminal of 80 columns.
LONGEST = 64


def fitting_image(job: CandidateJob) -> CompilerImage | None:
    """The matrix row of the job's own versions; None without the managed compiler."""
    rows = job.facts.managed.images if job.runs_managed else ()
    return next((row for row in rows if row.fits(job.framework)), None)


def target_image(job: CandidateJob) -> CompilerImage | None:
    """The fitting row, else the framework's newest: what the job would have to become."""
    return fitting_image(job) or max(_rows(job), key=age, default=None)


def _rows(job: CandidateJob) -> list[CompilerImage]:
    """The rows of the job's framework."""
    return [row for row in job.facts.managed.images if row.framework == job.framework.name]


def version_rule(job: CandidateJob) -> Iterator[Reason]:
    """Framework, versions and Python must be one row of the matrix, exactly."""
    if not job.runs_managed or _has_own_image(job):
        return
    framework, managed = job.framework, job.facts.managed
    row, last = fitting_image(job), max(_rows(job), key=age, default=None)
    if row is not None:
        yield from _documented_only(job, row)
    elif last is None:
        yield block(
            "framework_unsupported", job.field("framework.name"), "managed",
            source=managed.status_source, fix=nearest(job), framework=framework.name,
        )  # fmt: skip
    else:
        yield block(
            "version_unsupported", job.field("framework.version"), "managed", source=last.source,
            fix=nearest(job), framework=framework.name, version=label(framework), last=label(last),
        )  # fmt: skip
        if job.candidate.framework is None and parts(framework.version) > parts(last.version):
            yield info(
                "framework_downgrade", job.field("framework.version"),
                source=managed.status_source, version=framework.version, last=last.version,
            )  # fmt: skip


def _documented_only(job: CandidateJob, row: CompilerImage) -> Iterator[Reason]:
    """TensorFlow's compiler is in the ordinary image, so that image must exist."""
    version = job.framework.version
    images = [one.version for one in job.facts.images if one.framework == row.framework]
    if not row.same_image or any(matches(version, one) for one in images):
        return
    near = [one for one in images if parts(one)[:2] == parts(version)[:2]]
    yield block(
        "version_unsupported", job.field("framework.version"), "documented", source=row.source,
        fix=f'version: "{near[0]}"' if near else nearest(job), framework=row.framework,
        version=version,
    )  # fmt: skip


def _has_own_image(job: CandidateJob) -> bool:
    """Whether the team has its own image with the compiler in it."""
    return job.image().uri in {one.uri for one in job.facts.own_images}


def region_rule(job: CandidateJob) -> Iterator[Reason]:
    """The matrix has its own, smaller list of regions; none in China or GovCloud."""
    row = fitting_image(job)
    if row is not None and job.region not in row.regions and not _has_own_image(job):
        yield block(
            "region_unsupported", job.field("framework.version"), source=row.source,
            repository=row.repository, version=row.version, region=job.region,
            regions=len(row.regions), instead=_or_instead(job),
        )  # fmt: skip


def family_rule(job: CandidateJob) -> Iterator[Reason]:
    """It compiles for five GPU families and refuses every other."""
    managed, instance = job.facts.managed, job.instance
    if not job.runs_managed or instance is None or not instance.gpus:
        return
    if instance.family not in managed.instance_families:
        yield block(
            "instance_unsupported", job.field("instance_type"), "managed",
            source=managed.instance_families_source, instance_type=instance.instance_type,
            families=", ".join(managed.instance_families), instead=_or_instead(job),
        )  # fmt: skip


def _or_instead(job: CandidateJob) -> str:
    instead = compiler_instead(job)
    return f", or {instead}" if instead else ""


def lifecycle_rule(job: CandidateJob) -> Iterator[Reason]:
    """Frozen and unpatched, always reported; and versions without an image to compare with."""
    if not job.managed:
        return
    managed, instead = job.facts.managed, compiler_instead(job)
    prefer = f"prefer {instead} if it performs as well; " if instead else ""
    yield warn(
        "image_unpatched", job.compiler_field, "managed", source=managed.status_source,
        status=managed.status, prefer=prefer,
    )  # fmt: skip
    row = fitting_image(job)
    if row and row.native_image is None and job.image("none").uri is None:
        yield warn(
            "no_same_version_baseline", job.field("framework.version"), source=row.source,
            fix=paired(job), framework=row.framework, version=row.version,
        )  # fmt: skip


def nearest(job: CandidateJob) -> str:
    """The newest row of the same framework, and the newest with an image without the compiler."""
    row = max(_rows(job) or _same_kind(job), key=age)
    if row.native_image is None:
        return (
            "nearest of the same framework, with no image without the compiler to compare with:"
            f"\n{_lines(row, job)}\n{paired(job)}"
        )
    return f"nearest configuration for the candidate:\n{_lines(row, job)}"


def paired(job: CandidateJob) -> str:
    """The newest row that has a same-version image without the compiler."""
    row = max((row for row in _same_kind(job) if row.native_image), key=age)
    added = job.framework.transformers and row.transformers is None
    extra = ", transformers by requirements.txt" if added else ""
    return f"nearest with a same-version baseline{extra}:\n{_lines(row, job)}"


def _same_kind(job: CandidateJob) -> list[CompilerImage]:
    """The rows of the job's kind of framework; PyTorch's where it has none."""
    kind = "tensorflow" if job.framework.kind == "tensorflow" else "pytorch"
    return [row for row in job.facts.managed.images if row.framework.endswith(kind)]


def _lines(row: CompilerImage, job: CandidateJob) -> str:
    """What a candidate of this row would say, as YAML; short enough for a terminal."""
    keys = [f'name: {row.framework}, version: "{row.version}"']
    keys += [f'transformers: "{row.transformers}"'] if row.transformers else []
    keys.append(f"python: {row.python}")
    lines = [f"framework: {{{', '.join(keys)}}}"]
    if len(lines[0]) > LONGEST:
        lines = [f"framework: {{{keys[0]},", f"            {', '.join(keys[1:])}}}"]
    several = job.several_devices and row.multi_device == "pytorchxla"
    launcher = "pytorchxla" if several else "none"
    if launcher != job.workload.training.distribution:
        lines.append(f"distribution: {launcher}")
    return "\n".join(lines)
