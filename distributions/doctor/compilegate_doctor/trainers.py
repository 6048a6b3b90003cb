"""The settings of a transformers trainer, from the script or a workload's hyperparameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compilegate_doctor.options import UNKNOWN
from compilegate_doctor.script import Script
from compilegate_doctor.syntax import called, keyword

ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments")


@dataclass(frozen=True)
class TrainerSettings:
    """One set of a trainer's settings, as far as they can be read."""

    node: ast.AST
    script: Script
    call: ast.Call | None

    def get(self, name: str, default: Any) -> Any:
        """A setting's value; the library's ``default`` where it is certainly not set."""
        if self.call is None:
            return (self.script.hyperparameters or {}).get(name, default)
        value = keyword(self.call, name)
        if value is not None:
            return self.script.options.value(value)
        hidden = any(item.arg is None for item in self.call.keywords)
        return UNKNOWN if hidden else default

    def place(self, name: str) -> ast.AST:
        """Where the setting is, else where it should be."""
        value = keyword(self.call, name) if self.call is not None else None
        return self.node if value is None else value


def trainer_settings(script: Script) -> Iterator[TrainerSettings]:
    """Each set of trainer settings that can be read."""
    for call in script.calls:
        if called(call) in ARGUMENTS and not _stands_in(script, call):
            yield TrainerSettings(call, script, call)
        elif script.hyperparameters is not None and takes_arguments(call):
            yield TrainerSettings(call, script, None)


def takes_arguments(call: ast.Call) -> bool:
    """Whether a call reads trainer settings from the command line."""
    return called(call) == "HfArgumentParser" and any(
        "TrainingArguments" in ast.unparse(item)
        for item in (*call.args, *(value.value for value in call.keywords))
    )


def _stands_in(script: Script, call: ast.Call) -> bool:
    """``if args is None: args = TrainingArguments()`` is what a library does without any."""
    around = (one.test for one in script.parents_of(call) if isinstance(one, ast.If))
    return any(isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) for test in around)
