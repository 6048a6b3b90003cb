"""Hyperparameters that belong to SageMaker's toolkit: left in a file, they change the launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.reason import Reason, block, warn

PREFIX = "sagemaker_"
ENABLED = "sagemaker_training_compiler_enabled"
DEBUG = "sagemaker_training_compiler_debug_mode"
XLA = "sagemaker_pytorch_xla_multi_worker_enabled"
# Arguments of the SDK's estimators; as hyperparameters they reach the script alone.
PROFILERS = (
    "debugger_hook_config", "debug_hook_config", "profiler_config", "rules",
    "tensorboard_output_config",
)  # fmt: skip
TOOLKIT = "aws/sagemaker-pytorch-training-toolkit@d929872 training.py"
GUIDE = "training-compiler-enable-pytorch.md of the SageMaker developer guide"
PITFALLS = "training-compiler-tips-pitfalls.md of the SageMaker developer guide"


def platform_key_rule(context: Context) -> tuple[Reason, ...]:
    """Each switch that a file still carries, with what it would do."""
    values = context.hyperparameters
    found = [_key(context, key) for key in values if key.startswith(PREFIX)]
    switched_on = [key for key in PROFILERS if key in values and not is_off(values, key)]
    return tuple(found) + tuple(_profiler(context, key) for key in switched_on)


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
            "the compiler is switched off by hand: the job would run in its image without it",
            fix="remove the key; compiler: on the candidate decides", source=GUIDE,
        )  # fmt: skip
    if key == DEBUG and not off:
        return block(
            "compiler_debug", field,
            "debug mode makes the managed compiler write its graphs to the output; times of such "
            "a run say nothing",
            fix="remove the key", source=GUIDE,
        )  # fmt: skip
    if key == XLA and off and context.managed:
        return block(
            "distribution_missing", field,
            "with pytorchxla switched off every GPU and host trains a model of its own, and the "
            "SDK lets that through",
            fix="remove the key and set distribution: pytorchxla on the candidate", source=GUIDE,
        )  # fmt: skip
    return block(
        "reserved_hyperparameter", field,
        f"{key} is read by SageMaker's toolkit, not by the script, and can change how the job "
        "starts",
        fix="remove the key; distribution, compiler and entry_point decide", source=TOOLKIT,
    )  # fmt: skip


def _profiler(context: Context, key: str) -> Reason:
    return warn(
        "profiler_on", where(context, key),
        f"{key} is an argument of the SDK; as a hyperparameter it reaches the script alone, and "
        "debugger or profiler hooks would slow a compiled run down",
        fix="remove it; jobs of a trial run with the profiler off", source=PITFALLS,
    )  # fmt: skip
