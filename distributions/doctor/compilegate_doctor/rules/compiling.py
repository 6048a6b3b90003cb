"""Whether and how the script itself compiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate_doctor.finding import Hit, Severity
from compilegate_doctor.rule import COMPILE, TORCH_ONLY, WHERE_TO_COMPILE, Rule
from compilegate_doctor.script import Script
from compilegate_doctor.syntax import FUNCTIONS, LOOPS, constant, dotted, keyword, set_variable

WRAPPERS = ("DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "DataParallel")
SWITCHES = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
SUPPRESS = "torch._dynamo.config.suppress_errors"
DISABLE = "torch._dynamo.config.disable"


def unused_result(script: Script) -> Iterator[Hit]:
    """A compiled model that nothing keeps."""
    for call in script.models.compile_calls:
        if isinstance(script.parents.get(call), ast.Expr) and call.args:
            yield Hit(call, "torch.compile returns the compiled model, and the script discards it")


def in_a_loop(script: Script) -> Iterator[Hit]:
    """Compiling again and again."""
    for call in script.models.compile_calls:
        loop = _loop_around(script, call)
        if loop is None or not call.args:
            continue
        over = loop.target if isinstance(loop, ast.For | ast.AsyncFor) else None
        own = {dotted(node) for node in ast.walk(over)} if over is not None else set()
        # Compiling each layer once, in a loop over the layers, is fine.
        if not own & {dotted(node) for node in ast.walk(call.args[0])} - {""}:
            yield Hit(call, "torch.compile is called in every iteration of a loop")


def _loop_around(script: Script, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | None:
    for parent in script.parents_of(node):
        if isinstance(parent, LOOPS):
            return parent
        if isinstance(parent, (*FUNCTIONS, ast.Lambda)):
            return None
    return None


def after_wrapping(script: Script) -> Iterator[Hit]:
    """A distributed wrapper compiled as a whole."""
    wrapped: dict[str, int] = {}
    for node in script.nodes:
        if isinstance(node, ast.Assign) and _wraps(script, node.value):
            wrapped |= {dotted(target): node.lineno for target in node.targets}
    for call in script.models.compile_calls:
        model = call.args[0] if call.args else None
        before = model is not None and wrapped.get(dotted(model), call.lineno) < call.lineno
        if before or _wraps(script, model):
            yield Hit(call, "The model is compiled after it was wrapped for several GPUs")


def _wraps(script: Script, node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and script.called(node).split(".")[-1] in WRAPPERS


def switched_off(script: Script) -> Iterator[Hit]:
    """Settings that keep the compiler from doing anything."""
    for node in script.nodes:
        if not isinstance(node, ast.Assign):
            continue
        meaning = script.meaning(node.targets[0])
        variable = set_variable(node)
        if variable in SWITCHES:
            yield Hit(node, f"{variable} turns torch.compile off", Severity.BREAKS)
        elif meaning == DISABLE and constant(node.value) is True:
            yield Hit(node, "This turns torch.compile off", Severity.BREAKS)
        elif meaning == SUPPRESS and constant(node.value) is True:
            yield Hit(node, "Code that fails to compile then silently runs uncompiled")
    for call in script.models.compile_calls:
        disable = keyword(call, "disable")
        if disable is not None and script.options.value(disable) is True:
            yield Hit(disable, "disable=True turns torch.compile off", Severity.BREAKS)


RULES = (
    Rule(
        "compile-unused", "The compiled model is discarded", Severity.BREAKS, TORCH_ONLY,
        unused_result,
        "torch.compile(model) does not change the model, so training continues uncompiled.",
        "write model = torch.compile(model), or model.compile()",
        COMPILE,
    ),
    Rule(
        "compile-in-loop", "Compiling in a loop", Severity.SLOWS, TORCH_ONLY,
        in_a_loop,
        "Every call starts from scratch and may compile again.",
        "compile once, before the loop",
        COMPILE,
    ),
    Rule(
        "compile-after-wrapping", "Compiling the distributed wrapper", Severity.SLOWS, TORCH_ONLY,
        after_wrapping,
        "According to PyTorch, torch.compile does not handle the wrappers of DDP and FSDP well.",
        "compile the model first, then wrap it",
        WHERE_TO_COMPILE,
    ),
    Rule(
        "compile-off", "The compiler is turned off or its errors hidden", Severity.SLOWS,
        TORCH_ONLY, switched_off,
        "A run that only looks compiled would be measured as the compiler's result.",
        "remove the setting while the compiler is measured",
        COMPILE,
    ),
)  # fmt: skip
