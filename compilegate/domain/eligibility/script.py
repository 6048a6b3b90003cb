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
        yield block(
            "script_unsupported", field,
            f"pytorchxla starts Python scripts only, not {training.entry_point}",
            fix="name a .py file as entry_point", source=TOOLKIT,
        )  # fmt: skip
    elif job.candidate.entry_point is not None:
        return
    elif row is not None and (need := _need(job, row)):
        instead = compiler_instead(job)
        other = f", or use {instead}, which needs one line" if instead else ""
        yield warn(
            "script_needs_port", field, f"under the managed compiler the script needs {need}",
            fix=f"port the script and name it as the candidate's entry_point{other}",
            source=GUIDE.format(row.framework.rpartition("-")[2]),
        )  # fmt: skip
    elif needs is not None and job.has_graph:
        yield warn(
            "script_needs_port", field, f"under {job.compiler} the script needs {needs.what}",
            fix="port the script and name it as the candidate's entry_point", source=needs.source,
        )  # fmt: skip
    elif row is None and job.candidate.precision == "fp8" and job.has_graph:
        yield warn(
            "script_needs_port", field,
            "fp8 is not a switch: the script must use it, by Transformer Engine or torchao",
            fix="port the script and name it as the candidate's entry_point; measure quality too",
            source=WORKLOAD_FILE,
        )  # fmt: skip


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
            yield warn(
                "profiler_on", _path(job, key),
                f"{key} is an argument of the SDK; as a hyperparameter it reaches the script "
                "alone, and debugger or profiler hooks would slow a compiled run down",
                fix="remove it; jobs of a trial run with the profiler off", source=PITFALLS,
            )  # fmt: skip


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
        return block(
            "compiler_disabled", field,
            "the compiler is disabled by hand: the job would run in its image without it",
            fix="remove the key; compiler: on the candidate decides", source=XLA_GUIDE,
        )  # fmt: skip
    if key == DEBUG and not off:
        return block(
            "compiler_debug", field,
            "debug mode makes the managed compiler write its graphs to the output; timings of such "
            "a run are meaningless",
            fix="remove the key", source=XLA_GUIDE,
        )  # fmt: skip
    if key == XLA and off and job.managed:
        return block(
            "distribution_missing", field,
            "with pytorchxla disabled every GPU and host trains a separate model, and the SDK does "
            "not reject it",
            fix="remove the key and set distribution: pytorchxla on the candidate",
            source=XLA_GUIDE,
        )  # fmt: skip
    return block(
        "reserved_hyperparameter", field,
        f"{key} is read by SageMaker's toolkit, not by the script, and can change how the job "
        "starts",
        fix="remove the key; distribution, compiler and entry_point decide", source=KEYS_TOOLKIT,
    )  # fmt: skip
