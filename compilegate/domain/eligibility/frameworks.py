"""Can this compiler read this framework, and is there an image of it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.compilers import COMPILERS, compiler_named, has_own_image
from compilegate.domain.eligibility.candidate_job import WORKLOAD_FILE, CandidateJob
from compilegate.domain.eligibility.payoff import PITFALLS
from compilegate.domain.facts import CompilerImage, age, label, matches, parts
from compilegate.domain.reasons import Reason, block, info, warn
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


# SageMaker Training Compiler: does its frozen support matrix include this job?

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


# Does the script, or what it is started with, have to change?

GUIDE = "training-compiler-enable-{}.md of the SageMaker developer guide"
XLA_GUIDE = GUIDE.format("pytorch")
TOOLKIT = "aws/sagemaker-training-toolkit@3383937 pytorch_xla.py"
KEYS_TOOLKIT = "aws/sagemaker-pytorch-training-toolkit@d929872 training.py"
PREFIX = "sagemaker_"
ENABLED = "sagemaker_training_compiler_enabled"
DEBUG = "sagemaker_training_compiler_debug_mode"
XLA = "sagemaker_pytorch_xla_multi_worker_enabled"
# Arguments of the SDK's estimators; as hyperparameters they reach the script alone.
PROFILERS = (
    "debugger_hook_config", "debug_hook_config", "profiler_config", "rules",
    "tensorboard_output_config",
)  # fmt: skip


def script_rule(job: CandidateJob) -> Iterator[Reason]:
    """Compilers and fp8 may need a script with calls of its own, which a candidate may bring."""
    row, training, field = fitting_image(job), job.training, job.field("entry_point")
    compiler = compiler_named(job.compiler)
    needs = None if compiler is None else compiler.script_needs
    xla = row is not None and training.distribution == "pytorchxla"
    if xla and not training.entry_point.endswith(".py"):
        yield block("script_unsupported", field, source=TOOLKIT, entry_point=training.entry_point)
    elif job.candidate.entry_point is not None:
        return
    elif row is not None and (need := _need(job, row)):
        instead = compiler_instead(job)
        other = f", or use {instead}, which needs one line" if instead else ""
        yield warn(
            "script_needs_port", field, "managed",
            source=GUIDE.format(row.framework.rpartition("-")[2]), need=need, other=other,
        )  # fmt: skip
    elif needs is not None and job.has_graph:
        yield warn(
            "script_needs_port", field, "compiler", source=needs.source, compiler=job.compiler,
            need=needs.what,
        )  # fmt: skip
    elif row is None and job.candidate.precision == "fp8" and job.has_graph:
        yield warn("script_needs_port", field, "fp8", source=WORKLOAD_FILE)


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
            yield _switch(job, key)
    for key in PROFILERS:
        if key in values and not _is_off(values, key):
            yield warn("profiler_on", _path(job, key), source=PITFALLS, key=key)


def _is_off(values: Mapping[str, Any], key: str) -> bool:
    """Whether a switch says no; files hold booleans or their text."""
    return str(values[key]).strip().strip("\"'").lower() in ("false", "0", "none", "null", "")


def _path(job: CandidateJob, key: str) -> str:
    """Path of a hyperparameter: the candidate's if it names it."""
    own = job.index is not None and key in job.candidate.hyperparameters
    return f"{f'candidates[{job.index}]' if own else 'training'}.hyperparameters.{key}"


def _switch(job: CandidateJob, key: str) -> Reason:
    """A key that SageMaker's toolkit reads, with what it would do."""
    off, field = _is_off(job.training.hyperparameters, key), _path(job, key)
    if key == ENABLED and off and job.managed:
        return block("compiler_disabled", field, source=XLA_GUIDE)
    if key == DEBUG and not off:
        return block("compiler_debug", field, source=XLA_GUIDE)
    if key == XLA and off and job.managed:
        return block("distribution_missing", field, "disabled", source=XLA_GUIDE)
    return block("reserved_hyperparameter", field, source=KEYS_TOOLKIT, key=key)
