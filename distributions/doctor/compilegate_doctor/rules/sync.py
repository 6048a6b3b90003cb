"""Waiting for the GPU in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate_doctor.finding import Hit, Severity
from compilegate_doctor.kinds import Kind
from compilegate_doctor.options import UNKNOWN
from compilegate_doctor.rule import EVERY, MANAGED_PITFALLS, TUNING, Rule
from compilegate_doctor.script import Script
from compilegate_doctor.syntax import called, dotted, keyword, receiver
from compilegate_doctor.trainers import trainer_settings

TO_NUMBER = ("float", "int", "bool")
CERTAIN = ("item", "cpu", "tolist")
WAITS = {
    "torch.cuda.synchronize": "waits until the GPU is idle",
    "torch.cuda.empty_cache": "waits for the GPU and releases memory that is needed again",
    "torch_xla.core.xla_model.wait_device_ops": "waits until the device is idle",
}
LIGHTNING = ("lightning", "pytorch_lightning")
WRITERS = ("print", "info", "warning", "debug", "log", "write", "set_postfix", "set_description",
           "add_scalar", "add_scalars", "log_metrics", "master_print", "set_postfix_str",
           "log_metric", "format")  # fmt: skip


def host_sync(script: Script) -> Iterator[Hit]:
    """Values fetched from the device in every step."""
    if script.stays_on_host:
        return
    seen: set[ast.AST] = set()
    for node in script.steps.nodes:
        what = _fetches(script, node)
        statement = script.statement(node)
        if what and statement not in seen:
            seen.add(statement)
            yield Hit(node, f"{what} in every step")


def _fetches(script: Script, node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While) and script.is_tensor(node.test):
        return "A condition on a tensor waits for the GPU"
    if not isinstance(node, ast.Call):
        return ""
    name, on = called(node), receiver(node)
    if on is None:
        number = name in TO_NUMBER and len(node.args) == 1 and script.is_tensor(node.args[0])
        return f"{name}(…) of a tensor waits for the GPU" if number else ""
    if node.args or node.keywords or script.kinds.of(on) in (Kind.HOST, Kind.MODEL):
        return ""
    if script.is_tensor(on) and name in CERTAIN:
        return f".{name}() waits for the GPU"
    # Only tensors have these; what is certainly on the host was ruled out above.
    return f".{name}() waits for the GPU" if name == "item" and script.uses("torch") else ""


def logged_tensor(script: Script) -> Iterator[Hit]:
    """Tensors that are printed or logged in every step."""
    seen: set[ast.AST] = set()
    for call in () if script.stays_on_host else script.steps.calls:
        statement = script.statement(call)
        if not _writes(script, call) or statement in seen:
            continue
        if any(_fetches(script, node) for node in ast.walk(statement)):
            continue  # reported by host-sync
        if any(_shown(script, item) for item in ast.walk(call) if item is not call.func):
            seen.add(statement)
            yield Hit(call, f"{called(call)}(…) needs a tensor's value in every step")
    for settings in trainer_settings(script):
        every = settings.get("logging_strategy", "steps") in ("steps", UNKNOWN)
        if every and settings.get("logging_steps", 500) in (1, 1.0):
            yield Hit(
                settings.place("logging_steps"), "logging_steps=1 fetches the loss every step"
            )
    for call in script.calls:
        value = keyword(call, "log_every_n_steps")
        if value is not None and script.options.value(value) == 1:
            yield Hit(value, "log_every_n_steps=1 logs in every step")


def _writes(script: Script, call: ast.Call) -> bool:
    on = receiver(call)
    if dotted(call.func) == "self.log" and script.uses(*LIGHTNING):
        # It fetches every 50 steps unless told otherwise, for the progress bar in each.
        bar = keyword(call, "prog_bar")
        return bar is not None and script.options.value(bar) is True
    computes = script.called(call).startswith(("torch.", "numpy.", "math."))  # their log()
    result = called(call) == "log" and not isinstance(script.parents[call], ast.Expr)
    computes = computes or result
    return called(call) in WRITERS and not computes and not (on and script.is_tensor(on))


def _shown(script: Script, node: ast.AST) -> bool:
    if isinstance(node, ast.FormattedValue):
        return script.is_tensor(node.value)
    if isinstance(node, ast.Call):
        arguments = (*node.args, *(item.value for item in node.keywords))
        return _writes(script, node) and any(script.is_tensor(item) for item in arguments)
    return isinstance(node, ast.Dict) and any(script.is_tensor(item) for item in node.values)


def device_wait(script: Script) -> Iterator[Hit]:
    """Explicit waits in every step."""
    for call in script.steps.calls:
        why = WAITS.get(script.called(call))
        if why:
            yield Hit(call, f"{called(call)}() in every step {why}")


RULES = (
    Rule(
        "host-sync", "A value is fetched from the GPU in every step", Severity.SLOWS, EVERY,
        host_sync,
        "The processor waits for the GPU instead of preparing the next step, which costs a fast "
        "compiled step more. Under XLA the pending graph must run as well.",
        "add the tensor up on the device (total += loss.detach()) and fetch it every N steps",
        MANAGED_PITFALLS,
    ),
    Rule(
        "logged-tensor", "A tensor is printed or logged in every step", Severity.SLOWS, EVERY,
        logged_tensor,
        "Showing a value fetches it from the GPU: every step waits for the one before.",
        "log every N steps: if step % 100 == 0, or logging_steps=100",
        MANAGED_PITFALLS,
    ),
    Rule(
        "device-wait", "An explicit wait in every step", Severity.SLOWS, EVERY,
        device_wait,
        "The processor cannot prepare the next step, which hides the compiler's gain.",
        "remove it, or do it every N steps; time whole windows of steps instead of single ones",
        TUNING,
    ),
)  # fmt: skip
