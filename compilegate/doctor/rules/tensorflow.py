"""TensorFlow under the managed compiler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate.doctor.finding import Hit, Severity
from compilegate.doctor.rule import MANAGED_ONLY, Rule
from compilegate.doctor.rules import links
from compilegate.doctor.script import Script
from compilegate.doctor.syntax import Function, called, constant, keyword, last_name

EAGER = ("tensorflow.config.run_functions_eagerly",
         "tensorflow.config.experimental_run_functions_eagerly")  # fmt: skip


def eager_step(script: Script) -> Iterator[Hit]:
    """A training step outside any ``tf.function``."""
    if not script.uses("tensorflow"):
        return
    seen: set[ast.AST] = set()
    for call in script.calls:
        if called(call) != "GradientTape" or not script.called(call).startswith("tensorflow"):
            continue
        function = script.function_of(call)
        if function is None or function in seen:
            continue
        seen.add(function)
        if function.name != "train_step" and not _in_graph(script, function, set()):
            yield Hit(call, "This training step runs eagerly: no @tf.function around it")


def _in_graph(script: Script, function: Function, seen: set[ast.AST]) -> bool:
    """Whether it, or all that call it in this file, become a graph."""
    if function in seen:
        return False
    seen.add(function)
    decorators = [item.func if isinstance(item, ast.Call) else item
                  for item in function.decorator_list]  # fmt: skip
    if any(script.meaning(item) == "tensorflow.function" for item in decorators):
        return True
    wrapped = any(
        script.called(call) == "tensorflow.function" and call.args
        and last_name(call.args[0]) == function.name for call in script.calls
    )  # fmt: skip
    callers = {
        script.function_of(call) for call in script.calls
        if last_name(call.func) == function.name
        or any(last_name(item) == function.name for item in call.args)
    } - {None, function}  # fmt: skip
    return wrapped or any(caller and _in_graph(script, caller, seen) for caller in callers)


def eager_switch(script: Script) -> Iterator[Hit]:
    """Graphs that are turned off."""
    if not script.uses("tensorflow", "keras"):
        return
    for call in script.calls:
        eagerly = keyword(call, "run_eagerly")
        if eagerly is not None and script.options.value(eagerly) is True:
            yield Hit(eagerly, "run_eagerly=True turns graphs off")
        off = bool(call.args) and constant(call.args[0]) is False
        if script.called(call) in EAGER and not off:
            yield Hit(call, f"{called(call)} turns graphs off")


def several_nodes(script: Script) -> Iterator[Hit]:
    """A strategy for several nodes in a script that does not name the nodes."""
    if "TF_CONFIG" in script.text or not script.uses("tensorflow"):
        return
    for call in script.calls:
        if called(call).endswith("MultiWorkerMirroredStrategy"):
            yield Hit(call, "MultiWorkerMirroredStrategy, and the script sets no TF_CONFIG")


RULES = (
    Rule(
        "tf-eager-step", "A training step without @tf.function", Severity.BREAKS, MANAGED_ONLY,
        eager_step,
        "The managed compiler does not support eager execution.",
        "put @tf.function on the function that makes the training step",
        links.MANAGED_TENSORFLOW,
    ),
    Rule(
        "tf-eager-switch", "Graphs are turned off", Severity.BREAKS, MANAGED_ONLY,
        eager_switch,
        "The managed compiler does not support eager execution.",
        "remove it",
        links.MANAGED_TENSORFLOW,
    ),
    Rule(
        "tf-several-nodes", "Several nodes without TF_CONFIG", Severity.BREAKS, MANAGED_ONLY,
        several_nodes,
        "The SageMaker SDK refuses its own multi-worker option together with the compiler, so "
        "the workers do not learn of each other otherwise.",
        "set TF_CONFIG from /opt/ml/input/config/resourceconfig.json before the strategy is made",
        links.MANAGED_TENSORFLOW,
    ),
)  # fmt: skip
