"""Profilers, debug switches, checkpoints and evaluation that interrupt training too often."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate_doctor.finding import Hit, Severity
from compilegate_doctor.kinds import Kind
from compilegate_doctor.options import UNKNOWN
from compilegate_doctor.rule import EVERY, MANAGED_PITFALLS, TUNING, Rule
from compilegate_doctor.script import Script
from compilegate_doctor.syntax import called, keyword, set_variable
from compilegate_doctor.trainers import trainer_settings

ANOMALY = ("torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly",
           "torch.autograd.anomaly_mode.set_detect_anomaly",
           "torch.autograd.anomaly_mode.detect_anomaly")  # fmt: skip
PROFILERS = ("torch.autograd.profiler.profile", "torch.autograd.profiler.emit_nvtx",
             "torch.profiler.profile", "tensorflow.profiler.experimental.start",
             "tensorflow.debugging.enable_check_numerics")  # fmt: skip
BLOCKING = "CUDA_LAUNCH_BLOCKING"


def debugging(script: Script) -> Iterator[Hit]:
    """What watches every operation."""
    if not (script.steps.loops or script.has_trainer):
        return
    for call in script.calls:
        name = script.called(call)
        if name in ANOMALY and not _argument_off(script, call):
            if not script.guarded(call):
                yield Hit(call, "Anomaly detection checks every operation of every step")
        elif name in PROFILERS and not _partial(script, call) and not script.guarded(call):
            yield Hit(call, f"{called(call)} records the whole run")
        for item in call.keywords:
            on = script.options.value(item.value) is True
            if item.arg == "detect_anomaly" and on:
                yield Hit(item.value, "Anomaly detection checks every operation of every step")
    for settings in trainer_settings(script):
        if "underflow_overflow" in str(settings.get("debug", "")):
            place = settings.place("debug")
            yield Hit(place, "debug='underflow_overflow' looks at every result of every layer")
    if script.uses("smdebug"):
        yield from _hooks(script)
    yield from _environment(script)


def _hooks(script: Script) -> Iterator[Hit]:
    for call in script.calls:
        if script.called(call).startswith("smdebug") and "hook" in called(call).lower():
            yield Hit(call, "The SageMaker debugger's hook saves tensors while the model trains")


def _environment(script: Script) -> Iterator[Hit]:
    for node in script.nodes:
        if isinstance(node, ast.Assign) and set_variable(node) == BLOCKING:
            if script.guarded(node):
                continue
            yield Hit(node, f"{BLOCKING} waits for the GPU after every operation")


def _argument_off(script: Script, call: ast.Call) -> bool:
    mode = call.args[0] if call.args else keyword(call, "mode") or keyword(call, "check_nan")
    return mode is not None and script.options.value(mode) is not True


def _partial(script: Script, call: ast.Call) -> bool:
    """A schedule records few steps; a switch other than a plain True is a decision."""
    enabled = keyword(call, "enabled")
    switch = call.args[0] if call.args and "autograd" in script.called(call) else enabled
    off = switch is not None and script.options.value(switch) is not True
    return keyword(call, "schedule") is not None or off


FEW_STEPS = 50  # our own line: at a few steps a second that is a pause every minute
SAVES = ("save", "save_state", "save_pretrained", "save_checkpoint", "save_model", "save_weights")
SAVERS = ("torch.save", "torch_xla.core.xla_model.save")


def checkpoints(script: Script) -> Iterator[Hit]:
    """Saving in every step, or every few."""
    for call in script.steps.calls:
        saves = script.called(call) in SAVERS or called(call) in SAVES[1:]
        if saves and not script.called(call).startswith("torchvision"):
            yield Hit(call, f"{called(call)}(…) writes a checkpoint in every step")
    yield from _intervals(script, "save", "saves a checkpoint")


def evaluation(script: Script) -> Iterator[Hit]:
    """Evaluating in every step, or every few."""
    for call in script.steps.calls:
        for function in script.steps.targets(call):
            nodes = list(ast.walk(function))
            loops = any(isinstance(node, ast.For | ast.While) for node in nodes)
            runs = any(isinstance(node, ast.Call) and script.kinds.of(node.func) is Kind.MODEL
                       for node in nodes)  # fmt: skip
            if script.steps.is_evaluation(function) and loops and runs:
                yield Hit(call, f"{called(call)}(…) evaluates the model in every step")
    yield from _intervals(script, "eval", "evaluates the model")


def _intervals(script: Script, what: str, does: str) -> Iterator[Hit]:
    for settings in trainer_settings(script):
        # Saving by steps is the trainer's default, evaluation by steps is not.
        usual = "steps" if what == "save" else "no"
        strategy = settings.get(f"{what}_strategy", UNKNOWN)
        if strategy is UNKNOWN and what == "eval":
            strategy = settings.get("evaluation_strategy", usual)
        steps = settings.get(f"{what}_steps", 500)
        by_steps = strategy == "steps" or (strategy is UNKNOWN and what == "save")
        if by_steps and isinstance(steps, int) and 1 <= steps <= FEW_STEPS:
            yield Hit(settings.place(f"{what}_steps"), f"{what}_steps={steps} {does} that often")


RULES = (
    Rule(
        "debugging-on", "A profiler or debug mode is on", Severity.SLOWS, EVERY,
        debugging,
        "Looking at every operation undoes what fusing them gains and makes comparisons unfair.",
        "remove it, or put it behind an option that is off by default",
        TUNING,
    ),
    Rule(
        "frequent-checkpoints", "Checkpoints too often", Severity.SLOWS, EVERY,
        checkpoints,
        "A checkpoint fetches all weights from the GPU and writes them while training waits.",
        "save every few hundred steps, or once per epoch",
        MANAGED_PITFALLS,
    ),
    Rule(
        "frequent-evaluation", "Evaluation too often", Severity.SLOWS, EVERY,
        evaluation,
        "Training waits meanwhile, and the model is compiled once more for evaluation.",
        "evaluate every few hundred steps, or once per epoch",
        MANAGED_PITFALLS,
    ),
)  # fmt: skip
