"""Can this compiler read this framework, is there an image, does the script have to change?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.compilers import COMPILERS
from compilegate.domain.eligibility.job import NO_GRAPH_FRAMEWORKS, CandidateJob
from compilegate.domain.facts import CompilerImage, age, label, matches, parts
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import CONTROL_SUFFIX, library

# A line to copy, indented, must fit a terminal of 80 columns.
LONGEST = 64
PREFIX = "sagemaker_"
ENABLED = "sagemaker_training_compiler_enabled"
DEBUG = "sagemaker_training_compiler_debug_mode"
XLA = "sagemaker_pytorch_xla_multi_worker_enabled"
# Arguments of the SDK's estimators; as hyperparameters they reach the script alone.
PROFILERS = (
    "debugger_hook_config", "debug_hook_config", "profiler_config", "rules",
    "tensorboard_output_config",
)  # fmt: skip


def compiler_rule(job: CandidateJob) -> Iterator[Reason]:
    """A compiler needs a graph, and the framework that it is part of in a version that has it."""
    compiler, framework = job.descriptor, job.framework
    kind = compiler.kind or framework.kind  # a table of images says which it compiles
    if job.compiler == "none":
        return
    if not job.has_graph:
        tree = framework.name in NO_GRAPH_FRAMEWORKS
        what = framework.name if tree else f"a model of family {job.workload.model.family}"
        yield job.finds("framework_unsupported", "no_graph", what=what)
    elif framework.kind != kind:
        instead = compiler_instead(job)
        yield job.finds(
            "framework_unsupported", "other_library", source=compiler.source,
            needed=library(kind), instead=instead, nothing=not instead,
        )  # fmt: skip
    elif compiler.since and parts(framework.version) < compiler.since:
        rows = [row for row in job.facts.images if row.framework == framework.name]
        row, series = max(rows, key=age, default=None), f"{compiler.since[0]}.x"
        yield job.finds(
            "version_unsupported", "framework", source=compiler.source,
            needed=library(framework.kind), compiler=compiler.title, series=series,
            current=f"{row.framework} {label(row)}" if row else f"{compiler.kind} {series}",
        )  # fmt: skip


def compiler_instead(job: CandidateJob) -> str:
    """The first compiler of the job's own library, as the alternative; empty without any."""
    framework = job.workload.framework
    own = [one for one in COMPILERS.values() if one.kind == framework.kind]
    if not job.has_graph or not own:
        return ""
    if not own[0].since or parts(framework.version) >= own[0].since:
        return own[0].name
    return f"{own[0].name} on {library(framework.kind)} {own[0].since[0]}"


def image_rule(job: CandidateJob) -> Iterator[Reason]:
    """The baseline and the candidate each need an image; ``managed`` has rules for its own."""
    if job.compiled and not job.has_graph:
        return  # the job would not start
    runs = [(job.baseline, "the baseline")]
    if not job.managed and (job.candidate.framework is not None or job.descriptor.own_image):
        runs.append((job, "the candidate"))
    for run, whose in runs:
        image, field = run.image(), run.field("framework.version")
        if not image.uri:
            yield run.finds(image.code, "image", field=field, why=image.why, whose=whose)
        elif image.patched_until and image.patched_until < job.facts.as_of:
            yield run.finds(
                "image_unpatched", "framework", field=field, source=image.source,
                until=image.patched_until,
            )  # fmt: skip


def change_rule(job: CandidateJob) -> Iterator[Reason]:
    """Another version beside another compiler: the effects of both must be separable."""
    own, base = job.framework, job.workload.framework
    if job.facts.same_framework(own, base, region=job.region, instance=job.instance):
        return
    if own.kind != base.kind and job.candidate.entry_point is None:
        yield job.finds("framework_unsupported", "other_script", base=base.name, own=own.name)
        return
    older = own.kind == base.kind and parts(own.version) < parts(base.version)
    code, situation = ("framework_downgrade", "older") if older else ("framework_change", "other")
    change = f"{own.name} {label(own)} instead of {base.name} {label(base)}"
    yield job.finds(code, situation, fix=_separation(job, older=older), change=change)


def _separation(job: CandidateJob, *, older: bool) -> str:
    """What separates version and compiler: the plan's control, where it has one (arms.py)."""
    workload, control = job.workload, f"{job.candidate.name}{CONTROL_SUFFIX}"
    taken = any(one.name == control for one in workload.candidates)
    twin = bool(job.image("none").uri) and job.framework.kind == workload.framework.kind
    if job.descriptor.own_image and twin and not taken:
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


# SageMaker Training Compiler: does its frozen support matrix include this job?


def fitting_image(job: CandidateJob) -> CompilerImage | None:
    """The matrix row of the job's own versions; None without the managed compiler."""
    rows = job.facts.managed.images if job.runs_managed else ()
    return next((row for row in rows if row.fits(job.framework)), None)


def newest_image(job: CandidateJob) -> CompilerImage | None:
    """The newest row of the job's framework; None where the matrix has none of it."""
    rows = (row for row in job.facts.managed.images if row.framework == job.framework.name)
    return max(rows, key=age, default=None)


def managed_rule(job: CandidateJob) -> Iterator[Reason]:
    """Framework, versions, Python, region and GPU must be of one row of the matrix, exactly."""
    managed, instance, row = job.facts.managed, job.instance, fitting_image(job)
    if not job.managed:
        return
    own = job.image().uri in {one.uri for one in job.facts.own_images}
    instead = compiler_instead(job)
    or_instead = f", or {instead}" if instead else ""
    if job.has_graph and not own:
        yield from _versions(job, row, or_instead)
    family = instance.family if instance and instance.gpus else ""
    if job.has_graph and family not in ("", *managed.instance_families):
        yield job.finds(
            "instance_unsupported", "managed", source=managed.instance_families_source,
            families=", ".join(managed.instance_families), instead=or_instead,
        )  # fmt: skip
    # Frozen and unpatched, always reported.
    place = f"{job.place}.compiler" if job.place else "candidates"
    yield job.finds(
        "image_unpatched", "managed", field=place, source=managed.status_source,
        prefer=f"prefer {instead} if it performs as well; " if instead else "",
    )  # fmt: skip
    if row and not row.native_image and not job.image("none").uri:
        yield job.finds(
            "no_same_version_baseline", source=row.source, fix=_paired(job),
            framework=row.framework, version=row.version,
        )  # fmt: skip


def _versions(job: CandidateJob, row: CompilerImage | None, or_instead: str) -> Iterator[Reason]:
    framework, source = job.framework, job.facts.managed.status_source
    last = newest_image(job)
    if row is not None:
        # TensorFlow's compiler is in the ordinary image, so that image must exist.
        images = [one.version for one in job.facts.images if one.framework == row.framework]
        if row.same_image and not any(matches(framework.version, one) for one in images):
            near = [one for one in images if parts(one)[:2] == parts(framework.version)[:2]]
            fix = f'version: "{near[0]}"' if near else _nearest(job)
            yield job.finds("version_unsupported", "documented", source=row.source, fix=fix)
        if job.region not in row.regions:
            yield job.finds(
                "region_unsupported", "managed", source=row.source, repository=row.repository,
                version=row.version, regions=len(row.regions), instead=or_instead,
            )  # fmt: skip
    elif last is None:
        yield job.finds("framework_unsupported", "managed", source=source, fix=_nearest(job))
    else:
        yield job.finds(
            "version_unsupported", "managed", source=last.source, fix=_nearest(job),
            version=label(framework), last=label(last),
        )  # fmt: skip
        if job.candidate.framework is None and parts(framework.version) > parts(last.version):
            yield job.finds("framework_downgrade", "managed", source=source, last=last.version)


def _nearest(job: CandidateJob) -> str:
    """The newest row of the same framework, and the newest with an image without the compiler."""
    row = newest_image(job) or max(_same_kind(job), key=age)
    if not row.native_image:
        return (
            "nearest of the same framework, with no image without the compiler to compare with:"
            f"\n{_lines(row, job)}\n{_paired(job)}"
        )
    return f"nearest configuration for the candidate:\n{_lines(row, job)}"


def _paired(job: CandidateJob) -> str:
    """The newest row that has a same-version image without the compiler."""
    row = max((row for row in _same_kind(job) if row.native_image), key=age)
    added = job.framework.transformers and not row.transformers
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


# Does the script, or what it is started with, have to change?


def script_rule(job: CandidateJob) -> Iterator[Reason]:
    """Compilers and fp8 may need a script with calls of its own, which a candidate may bring."""
    row, training, needs = fitting_image(job), job.training, job.descriptor.script_needs
    xla = row is not None and training.distribution == "pytorchxla"
    if xla and not training.entry_point.endswith(".py"):
        yield job.finds("script_unsupported", entry_point=training.entry_point)
    elif job.candidate.entry_point is not None:
        return
    elif row is not None and (need := _need(job, row)):
        instead = compiler_instead(job)
        yield job.finds(
            "script_needs_port", "managed", library=row.framework.rpartition("-")[2], need=need,
            other=f", or use {instead}, which needs one line" if instead else "",
        )  # fmt: skip
    elif needs is not None and job.has_graph:
        yield job.finds("script_needs_port", "compiler", source=needs.source, need=needs.what)
    elif row is None and job.candidate.precision == "fp8" and job.has_graph:
        yield job.finds("script_needs_port", "fp8")


def _need(job: CandidateJob, row: CompilerImage) -> str:
    """What a script must have in this image, empty where it may stay as it is."""
    trainer = "huggingface-pytorch"
    if row.framework.endswith("tensorflow"):
        several_nodes = job.training.instance_count > 1
        return "TF_CONFIG set by itself on several nodes" if several_nodes else ""
    if job.framework.name == trainer:
        started = "a function _mp_fn(index) that starts it on each GPU"
        return started if job.several_devices else ""
    calls = "torch_xla calls (xm.xla_device, xm.mark_step, xm.save)"
    if job.workload.framework.name == trainer:
        return f"transformers in its requirements.txt, and {calls} where no Trainer makes them"
    return calls


def hyperparameters_rule(job: CandidateJob) -> Iterator[Reason]:
    """Switches of toolkit and SDK among the hyperparameters, with what each would do."""
    values = job.training.hyperparameters
    for key in values:
        if key.startswith(PREFIX):
            off, field = _is_off(values, key), _path(job, key)
            if key == ENABLED and off and job.managed:
                yield job.finds("compiler_disabled", field=field)
            elif key == DEBUG and not off:
                yield job.finds("compiler_debug", field=field)
            elif key == XLA and off and job.managed:
                yield job.finds("distribution_missing", "disabled", field=field)
            else:
                yield job.finds("reserved_hyperparameter", field=field, key=key)
    for key in PROFILERS:
        if key in values and not _is_off(values, key):
            yield job.finds("profiler_on", field=_path(job, key), key=key)


def _is_off(values: Mapping[str, Any], key: str) -> bool:
    """Whether a switch says no; files hold booleans or their text."""
    return str(values[key]).strip().strip("\"'").lower() in ("false", "0", "none", "null", "")


def _path(job: CandidateJob, key: str) -> str:
    """Path of a hyperparameter: the candidate's if it names it."""
    own = job.place and key in job.candidate.hyperparameters
    return f"{job.place if own else 'training'}.hyperparameters.{key}"
