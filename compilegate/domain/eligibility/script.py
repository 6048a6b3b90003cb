"""Does the script, or what it is started with, have to change?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.compilers import compiler_named
from compilegate.domain.eligibility.candidate_job import WORKLOAD_FILE, CandidateJob
from compilegate.domain.eligibility.frameworks import compiler_instead
from compilegate.domain.eligibility.managed import fitting_image
from compilegate.domain.eligibility.payoff import PITFALLS
from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.reasons import Reason, block, warn

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
    own = job.index is not None and key in (job.candidate.hyperparameters or {})
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
