"""Must the script change before it runs this way?"""

from __future__ import annotations

from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.frameworks import torch_compile_instead
from compilegate.domain.eligibility.managed import applies, fitting_image
from compilegate.domain.eligibility.reason import Reason, block, warn
from compilegate.domain.facts.images import CompilerImage

GUIDE = "training-compiler-enable-{}.md of the SageMaker developer guide"
TOOLKIT = "aws/sagemaker-training-toolkit@3383937 pytorch_xla.py"


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
