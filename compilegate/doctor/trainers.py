"""What a transformers trainer is told, in the script or by a workload's hyperparameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compilegate.doctor.options import UNKNOWN
from compilegate.doctor.script import Script
from compilegate.doctor.syntax import called, keyword

ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments")


@dataclass(frozen=True)
class Told:
    """Where a trainer's settings stand, and those that are known."""

    node: ast.AST
    script: Script
    call: ast.Call | None

    def get(self, name: str, default: Any) -> Any:
        """A setting's value; the library's ``default`` where it is certainly not given."""
        if self.call is None:
            return (self.script.given or {}).get(name, default)
        given = keyword(self.call, name)
        if given is not None:
            return self.script.options.value(given)
        hidden = any(item.arg is None for item in self.call.keywords)
        return UNKNOWN if hidden else default

    def place(self, name: str) -> ast.AST:
        """Where the setting is, else where it should be."""
        given = keyword(self.call, name) if self.call is not None else None
        return self.node if given is None else given


def told(script: Script) -> Iterator[Told]:
    """Each set of trainer settings that can be read."""
    for call in script.calls:
        if called(call) in ARGUMENTS:
            yield Told(call, script, call)
        elif script.given is not None and takes_arguments(call):
            yield Told(call, script, None)


def takes_arguments(call: ast.Call) -> bool:
    """Whether a call reads trainer settings from the command line."""
    return called(call) == "HfArgumentParser" and any(
        "TrainingArguments" in ast.unparse(item)
        for item in (*call.args, *(given.value for given in call.keywords))
    )
