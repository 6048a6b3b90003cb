"""Checkpoints and evaluation that interrupt training too often."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate.doctor.finding import Hit, Severity
from compilegate.doctor.options import UNKNOWN
from compilegate.doctor.rule import BOTH, Rule
from compilegate.doctor.rules import links
from compilegate.doctor.script import Script
from compilegate.doctor.syntax import called
from compilegate.doctor.trainers import trainer_settings

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
            loops = any(isinstance(node, ast.For | ast.While) for node in ast.walk(function))
            if script.steps.is_evaluation(function) and loops:
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
        "frequent-checkpoints", "Checkpoints too often", Severity.SLOWS, BOTH,
        checkpoints,
        "A checkpoint fetches all weights from the GPU and writes them while training waits.",
        "save every few hundred steps, or once per epoch",
        links.MANAGED_PITFALLS,
    ),
    Rule(
        "frequent-evaluation", "Evaluation too often", Severity.SLOWS, BOTH,
        evaluation,
        "Training waits meanwhile, and the model is compiled once more for evaluation.",
        "evaluate every few hundred steps, or once per epoch",
        links.MANAGED_PITFALLS,
    ),
)  # fmt: skip
