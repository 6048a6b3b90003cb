"""What a script lacks under the managed compiler: PyTorch/XLA, or TensorFlow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from compilegate_doctor.finding import Hit, Severity
from compilegate_doctor.options import HOLDERS
from compilegate_doctor.rule import (
    MANAGED_ONLY,
    MANAGED_PITFALLS,
    MANAGED_PYTORCH,
    MANAGED_TENSORFLOW,
    Rule,
)
from compilegate_doctor.script import Script
from compilegate_doctor.syntax import (
    Function,
    called,
    calls_in,
    constant,
    dotted,
    keyword,
    last_name,
    receiver,
    texts,
)
from compilegate_doctor.words import OPTIMIZER

BARRIERS = ("mark_step", "MpDeviceLoader", "ParallelLoader", "per_device_loader")
WHOLE_STEPS = ("torch_xla.sync", "torch_xla.step", "torch_xla.compile")
# A script that calls one of these combines its gradients itself.
COMBINES = re.compile(
    r"^(all_reduce|_fetch_gradients|reduce_gradients|optimizer_step|use_spmd)$|"
    r"FullySharded|FSDP|DistributedDataParallel|^DDP$|ZeroRedundancy|_wrap$"
)
LIBRARIES = ("accelerate", "lightning", "pytorch_lightning", "deepspeed", "fastai")
ABOUT_XLA = ("xla", "tpu", "xm")
AMP = ("torch.cuda.amp.autocast", "torch.cuda.amp.GradScaler", "torch.amp.GradScaler")


def cuda_device(script: Script) -> Iterator[Hit]:
    """CUDA devices in a script for XLA."""
    if _library_runs_it(script) or not script.uses("torch"):
        return
    seen: set[ast.AST] = set()
    for call in script.calls:
        what = _names_cuda(script, call)
        statement = script.statement(call)
        if what and statement not in seen and not _about_xla(script, call):
            seen.add(statement)
            yield Hit(call, what)


def _names_cuda(script: Script, call: ast.Call) -> str:
    name = script.called(call)
    if called(call) == "cuda" and receiver(call) is not None:
        return ".cuda() moves it to a device that XLA does not compile for"
    values = [script.options.value(item) for item in call.args[:1]]
    values += [node.value for item in call.args for node in ast.walk(item)
              if isinstance(node, ast.Constant)]  # fmt: skip
    spelled = any(isinstance(value, str) and value.startswith("cuda") for value in values)
    places = name == "torch.device" or called(call) == "to"
    wrong = (places and spelled) or name == "torch.cuda.set_device"
    return "A CUDA device instead of the XLA device" if wrong else ""


def mixed_precision(script: Script) -> Iterator[Hit]:
    """CUDA's mixed precision."""
    if _library_runs_it(script):
        return
    for call in script.calls:
        if script.called(call) in AMP and not _about_xla(script, call):
            yield Hit(call, f"{called(call)} of torch.cuda does not work on XLA's device")


def mark_step(script: Script) -> Iterator[Hit]:
    """A loop that never makes XLA run the collected operations."""
    if _library_runs_it(script) or not script.uses("torch"):
        return
    marks = any(
        called(call) in BARRIERS
        or script.called(call) in WHOLE_STEPS
        or (called(call) == "optimizer_step" and keyword(call, "barrier") is not None)
        for call in script.calls
    )
    if marks or not script.steps.loops:
        return
    ported = "" if script.uses("torch_xla") else "; the script does not use torch_xla at all"
    loop = next(filter(script.steps.moves_weights, script.steps.loops), script.steps.loops[-1])
    yield Hit(loop, f"Nothing in this training loop makes XLA run the step{ported}")


def optimizer_step(script: Script) -> Iterator[Hit]:
    """Plain optimizer steps, which do not combine the gradients of several GPUs."""
    if _library_runs_it(script) or not script.uses("torch_xla"):
        return
    if any(COMBINES.search(called(call)) for call in script.calls):
        return
    for call in script.steps.calls:
        on = receiver(call)
        plain = called(call) == "step" and on is not None and OPTIMIZER.search(dotted(on))
        if plain and not _about_xla(script, call):
            yield Hit(call, "optimizer.step() does not combine the gradients of several GPUs")


def plain_save(script: Script) -> Iterator[Hit]:
    """``torch.save`` of tensors on XLA's device."""
    if not (script.steps.loops or script.has_trainer) or script.uses("accelerate"):
        return
    for call in script.calls:
        if script.called(call) != "torch.save" or _about_xla(script, call):
            continue
        settings = call.args and HOLDERS.search(dotted(call.args[0]))
        if not settings and not any(called(item) == "cpu" for item in calls_in(call)):
            yield Hit(call, "torch.save stores tensors with their XLA device")


def entry_function(script: Script) -> Iterator[Hit]:
    """The function that the launcher calls on every GPU."""
    trained = script.has_trainer and any(called(call) == "train" for call in script.calls)
    trains = trained or (script.steps.loops and script.uses("torch_xla"))
    start = next((node for node in script.tree.body if _is_main(node)), None)
    fabric = script.uses("lightning", "pytorch_lightning")  # which starts the processes itself
    if not trains or fabric or script.uses("tensorflow") or start is None:
        return
    names = {function.name for function in script.functions}
    names |= {
        script.meaning(node).split(".")[-1] for node in script.nodes if isinstance(node, ast.Name)
    }
    if "_mp_fn" not in names:
        yield Hit(start, "There is no _mp_fn(index), which the launcher calls per GPU")


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in set(texts(node.test))


def _library_runs_it(script: Script) -> bool:
    """Whether a library that supports XLA places tensors and marks steps."""
    return script.uses(*LIBRARIES) or (script.has_trainer and not script.steps.loops)


def _about_xla(script: Script, node: ast.AST) -> bool:
    """Whether this is in a branch that distinguishes XLA from CUDA."""
    return any(
        isinstance(parent, ast.If | ast.IfExp)
        and any(word in text.lower() for text in texts(parent.test) for word in ABOUT_XLA)
        for parent in script.parents_of(node)
    )


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
    """Whether the function, or every caller of it in this file, becomes a graph."""
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
        if script.called(call) in EAGER and not off and not script.guarded(call):
            yield Hit(call, f"{called(call)} turns graphs off")


def several_nodes(script: Script) -> Iterator[Hit]:
    """A strategy for several nodes in a script that does not name the nodes."""
    if "TF_CONFIG" in script.text or not script.uses("tensorflow"):
        return
    for call in script.calls:
        if called(call).endswith("MultiWorkerMirroredStrategy"):
            yield Hit(call, "MultiWorkerMirroredStrategy is used, but the script sets no TF_CONFIG")


RULES = (
    Rule(
        "xla-device", "A CUDA device under XLA", Severity.BREAKS, MANAGED_ONLY,
        cuda_device,
        "Tensors on a CUDA device are not compiled, and mixing the two kinds of device fails.",
        "use device = xm.xla_device() and .to(device)",
        MANAGED_PITFALLS,
    ),
    Rule(
        "xla-amp", "CUDA's mixed precision under XLA", Severity.BREAKS, MANAGED_ONLY,
        mixed_precision,
        "The managed compiler needs the versions of PyTorch/XLA.",
        "use torch_xla.amp: autocast, GradScaler and the syncfree optimizers",
        MANAGED_PYTORCH,
    ),
    Rule(
        "xla-mark-step", "No mark_step in the training loop", Severity.BREAKS, MANAGED_ONLY,
        mark_step,
        "XLA collects operations until mark_step runs them; without it, training stalls.",
        "end each step with xm.mark_step(), or take batches from an MpDeviceLoader",
        MANAGED_PITFALLS,
    ),
    Rule(
        "xla-optimizer-step", "A plain optimizer step under XLA", Severity.BREAKS, MANAGED_ONLY,
        optimizer_step,
        "Gradients of several GPUs are then never combined: each trains its own model.",
        "call xm.optimizer_step(optimizer)",
        MANAGED_PYTORCH,
    ),
    Rule(
        "xla-save", "torch.save under XLA", Severity.BREAKS, MANAGED_ONLY,
        plain_save,
        "Such a checkpoint can be read only where there is an XLA device.",
        "call xm.save(model.state_dict(), path)",
        MANAGED_PITFALLS,
    ),
    Rule(
        "xla-entry", "No _mp_fn for several GPUs", Severity.NOTE, MANAGED_ONLY,
        entry_function,
        "The pytorchxla launcher calls _mp_fn(index) in every process; without it each of several "
        "GPUs trains its own model.",
        "add def _mp_fn(index): main()",
        MANAGED_PYTORCH,
    ),
    Rule(
        "tf-eager-step", "A training step without @tf.function", Severity.BREAKS, MANAGED_ONLY,
        eager_step,
        "The managed compiler does not support eager execution.",
        "put @tf.function on the function that makes the training step",
        MANAGED_TENSORFLOW,
    ),
    Rule(
        "tf-eager-switch", "Graphs are turned off", Severity.BREAKS, MANAGED_ONLY,
        eager_switch,
        "The managed compiler does not support eager execution.",
        "remove it",
        MANAGED_TENSORFLOW,
    ),
    Rule(
        "tf-several-nodes", "Several nodes without TF_CONFIG", Severity.BREAKS, MANAGED_ONLY,
        several_nodes,
        "The SageMaker SDK rejects its own multi-worker option with the compiler, so only "
        "TF_CONFIG tells workers about each other.",
        "set TF_CONFIG from /opt/ml/input/config/resourceconfig.json before the strategy is made",
        MANAGED_TENSORFLOW,
    ),
)  # fmt: skip
