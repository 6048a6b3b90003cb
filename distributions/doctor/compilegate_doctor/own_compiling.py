"""Whether a script compiles its model itself, as it runs today."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate_doctor.models import COMPILE
from compilegate_doctor.script import Script, ScriptError, parse
from compilegate_doctor.syntax import (
    called,
    dotted,
    keyword,
    last_name,
    receiver,
)
from compilegate_doctor.words import MODEL

# Most scripts hold none of these words, and need not be parsed.
_MENTIONED = re.compile(rb"compile|dynamo", re.IGNORECASE)
# transformers' TrainingArguments turns compiling on by any one of these
# (https://huggingface.co/docs/transformers/main_classes/trainer).
TRAINER_SWITCHES = ("torch_compile", "torch_compile_backend", "torch_compile_mode")
# accelerate's Accelerator and its TorchDynamoPlugin
# (https://huggingface.co/docs/accelerate/package_reference/accelerator).
BACKENDS = {"Accelerator": "dynamo_backend", "TorchDynamoPlugin": "backend"}
# An optimizer's or a scheduler's own code: a library's, which both arms have.
LIBRARY_METHODS = ("step", "zero_grad")


@dataclass(frozen=True)
class OwnCompiling:
    """Where a script compiles; ``line`` counts from 1, ``source`` is the line as written."""

    line: int
    source: str

    def to_dict(self) -> dict[str, Any]:
        """The place as JSON."""
        return {"line": self.line, "source": self.source}


def where_it_compiles(
    content: bytes, hyperparameters: Mapping[str, Any] | None = None
) -> OwnCompiling | None:
    """Where a script first compiles itself, None where it is not seen to.

    ``hyperparameters`` are those it is started with. A branch that they, or the script's defaults,
    leave out does not count; nor do other files, variables of the environment and accelerate's
    configuration file. A file that is not Python is not judged here.
    """
    if not _MENTIONED.search(content) and not _by_arguments(hyperparameters):
        return None
    try:
        script = parse(content, hyperparameters)
        return compiling_of(script)
    except (ScriptError, RecursionError):
        return None


def compiling_of(script: Script) -> OwnCompiling | None:
    """As ``where_it_compiles``, of a script that is parsed already."""
    places = [node for node in _places(script) if not script.unreached(node)]
    if not places:
        return None
    line = min(getattr(node, "lineno", 1) for node in places)
    return OwnCompiling(line, script.lines[line - 1].strip())


def _places(script: Script) -> Iterator[ast.AST]:
    for call in script.calls:
        if (
            (script.called(call) == COMPILE and _compiles(script, call))
            or _in_place(script, call)
            or _by_setting(script, call)
        ):
            yield call
    for function in script.functions:
        yield from (item for item in function.decorator_list if script.meaning(item) == COMPILE)
    if _by_arguments(script.hyperparameters):
        yield from (call for call in script.calls if called(call) == "HfArgumentParser")


def _compiles(script: Script, call: ast.Call) -> bool:
    """Whether a call of torch.compile changes what trains: its result is kept, it is not off."""
    disable = keyword(call, "disable")
    if disable is not None and script.options.value(disable) is True:
        return False
    if not call.args:
        return True  # torch.compile(...) as a decorator
    discarded = isinstance(script.parents.get(call), ast.Expr)
    return not discarded and not _of_library(script, call.args[0])


def _of_library(script: Script, compiled: ast.expr) -> bool:
    """Whether it is a library's function, which stays compiled in both arms."""
    written, name = dotted(compiled), last_name(compiled)
    imported = script.meaning(compiled) != written or script.uses(written.partition(".")[0])
    return name in LIBRARY_METHODS or (imported and not MODEL.search(name))


def _in_place(script: Script, call: ast.Call) -> bool:
    """``model.compile()`` of a PyTorch module; Keras's takes an optimizer or a loss."""
    on = receiver(call)
    return (
        called(call) == "compile"
        and on is not None
        and bool(MODEL.search(last_name(on)))
        and script.uses("torch")
        and not any(word.arg in ("optimizer", "loss") for word in call.keywords)
    )


def _by_setting(script: Script, call: ast.Call) -> bool:
    """A setting of transformers' or accelerate's that compiles the model."""
    for name in TRAINER_SWITCHES:
        if _on(script.options.value(keyword(call, name))):
            return True
    backend = keyword(call, BACKENDS.get(called(call), ""))
    if backend is None:
        return False
    word = script.options.value(backend)
    return (word if isinstance(word, str) else last_name(backend)).lower() not in ("", "no")


def _by_arguments(hyperparameters: Mapping[str, Any] | None) -> bool:
    """Whether the hyperparameters let a Trainer that reads them compile."""
    return any(_on((hyperparameters or {}).get(name)) for name in TRAINER_SWITCHES)


def _on(value: object) -> bool:
    return isinstance(value, bool | str) and str(value).lower() not in ("", "false", "0", "no")
