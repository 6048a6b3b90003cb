"""Does the script, or what it is started with, have to change?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.frameworks import torch_compile_instead
from compilegate.domain.eligibility.managed import applies, fitting_image
from compilegate.domain.facts.images import CompilerImage
from compilegate.domain.reasons import Reason, block, warn

GUIDE = "training-compiler-enable-{}.md of the SageMaker developer guide"
TOOLKIT = "aws/sagemaker-training-toolkit@3383937 pytorch_xla.py"
PREFIX = "sagemaker_"
ENABLED = "sagemaker_training_compiler_enabled"
DEBUG = "sagemaker_training_compiler_debug_mode"
XLA = "sagemaker_pytorch_xla_multi_worker_enabled"
# Arguments of the SDK's estimators; as hyperparameters they reach the script alone.
PROFILERS = (
    "debugger_hook_config", "debug_hook_config", "profiler_config", "rules",
    "tensorboard_output_config",
)  # fmt: skip
KEYS_TOOLKIT = "aws/sagemaker-pytorch-training-toolkit@d929872 training.py"
XLA_GUIDE = "training-compiler-enable-pytorch.md of the SageMaker developer guide"
PITFALLS = "training-compiler-tips-pitfalls.md of the SageMaker developer guide"


def script_rule(context: Context) -> tuple[Reason, ...]:
    """XLA wants its own calls, unless the candidate brings a script that has them."""
    row = fitting_image(context) if applies(context) else None
    if row is None:
        return _fp8(context)
    field = context.field("entry_point")
    if context.distribution == "pytorchxla" and not context.entry_point.endswith(".py"):
        return (
            block(
                "script_unsupported", field,
                f"pytorchxla starts Python scripts only, not {context.entry_point}",
                fix="name a .py file as entry_point", source=TOOLKIT,
            ),
        )  # fmt: skip
    need = _need(context, row)
    if not need or context.candidate.entry_point is not None:
        return ()
    instead = torch_compile_instead(context)
    other = f", or use {instead}, which needs one line" if instead else ""
    return (
        warn(
            "script_needs_port", field,
            f"under the managed compiler the script needs {need}",
            fix=f"port the script and name it as the candidate's entry_point{other}",
            source=GUIDE.format(row.framework.rpartition("-")[2]),
        ),
    )  # fmt: skip


def _need(context: Context, row: CompilerImage) -> str:
    """What a script must have in this image, empty where it may stay as it is."""
    several = (context.devices or 1) > 1
    if row.framework.endswith("tensorflow"):
        return "TF_CONFIG set by itself on several nodes" if context.instance_count > 1 else ""
    trainer = context.framework.name == "huggingface-pytorch"
    moved = context.workload.framework.name == "huggingface-pytorch" and not trainer
    if trainer:
        return "a function _mp_fn(index) that starts it on each GPU" if several else ""
    calls = "torch_xla calls (xm.xla_device, xm.mark_step, xm.save)"
    if moved:
        return f"transformers in its requirements.txt, and {calls} where no Trainer makes them"
    return calls


def _fp8(context: Context) -> tuple[Reason, ...]:
    if context.precision != "fp8" or context.candidate.precision is None or not context.has_graph:
        return ()
    if context.candidate.entry_point is not None:
        return ()
    return (
        warn(
            "script_needs_port", context.field("entry_point"),
            "fp8 is not a switch: the script must use it, by Transformer Engine or torchao",
            fix="port the script and name it as the candidate's entry_point; measure quality too",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip


def platform_key_rule(context: Context) -> tuple[Reason, ...]:
    """Each switch that a file still carries, with what it would do."""
    values = context.hyperparameters
    reasons = [_key(context, key) for key in values if key.startswith(PREFIX)]
    switched_on = [key for key in PROFILERS if key in values and not is_off(values, key)]
    return tuple(reasons) + tuple(_profiler(context, key) for key in switched_on)


def is_off(values: Mapping[str, Any], key: str) -> bool:
    """Whether a switch says no; files hold booleans or their text."""
    return str(values[key]).strip().strip("\"'").lower() in ("false", "0", "none", "null", "")


def where(context: Context, key: str) -> str:
    """Path of a hyperparameter: the candidate's if it names it."""
    own = context.candidate.hyperparameters or {}
    if context.index is not None and key in own:
        return f"candidates[{context.index}].hyperparameters.{key}"
    return f"training.hyperparameters.{key}"


def _key(context: Context, key: str) -> Reason:
    field, off = where(context, key), is_off(context.hyperparameters, key)
    if key == ENABLED and off and context.managed:
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
    if key == XLA and off and context.managed:
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


def _profiler(context: Context, key: str) -> Reason:
    return warn(
        "profiler_on", where(context, key),
        f"{key} is an argument of the SDK; as a hyperparameter it reaches the script alone, and "
        "debugger or profiler hooks would slow a compiled run down",
        fix="remove it; jobs of a trial run with the profiler off", source=PITFALLS,
    )  # fmt: skip
