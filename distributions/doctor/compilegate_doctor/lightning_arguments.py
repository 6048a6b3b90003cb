"""The arguments of Lightning's own command line, ``LightningCLI``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate_doctor.argument import Option, is_unread, value_of
from compilegate_doctor.project import Project
from compilegate_doctor.source import Source
from compilegate_doctor.syntax import (
    argument,
    called,
    constant,
    keyword,
    last_name,
    with_defaults,
)

CLI = "LightningCLI"
# What ends a run of Lightning's Trainer; without any of them it trains DEFAULT_EPOCHS
# (lightning.pytorch.Trainer, parameter max_epochs).
LENGTHS = ("max_epochs", "max_steps", "max_time")
DEFAULT_EPOCHS = 1000
# Options of the command line that name its classes or its settings as it is called.
_CLASSES = (("model", "model_class"), ("data", "datamodule_class"))


def lightning_call(project: Project) -> ast.Call | None:
    """The call that reads the command line, also by a class of the script made of Lightning's."""
    script = project.script
    own = {node.name for node in script.nodes if isinstance(node, ast.ClassDef)
           for base in node.bases if last_name(base).endswith(CLI)}  # fmt: skip
    calls = (call for call in script.calls if called(call).endswith(CLI) or called(call) in own)
    return next(calls, None)


def subcommand(call: ast.Call) -> str:
    """``fit``, unless the script starts the training itself."""
    return "" if constant(keyword(call, "run")) is False else "fit"


def of_lightning(project: Project, call: ast.Call) -> Iterator[Option]:
    """Parameters of the model and of the data module, and what every Trainer takes."""
    classes = [argument(call, index, word) for index, (_, word) in enumerate(_CLASSES)]
    for (prefix, _), node in zip(_CLASSES, classes, strict=True):
        made = project.class_named(node)
        yield from _parameters(prefix, made[1]) if made else ()
    model = classes[0]
    configured = constant(model) is None and not isinstance(model, ast.Name | ast.Attribute)
    if configured:  # a file names the classes, and may say everything else
        yield Option("config", required=True)
    yield Option("seed_everything")
    yield Option("trainer.max_steps")
    yield Option("trainer.precision", choices=("32-true", "bf16-mixed", "16-mixed"))
    if not configured and not any(map(_bounds, _files(project, call))):
        yield Option("trainer.max_epochs", DEFAULT_EPOCHS)


def _parameters(prefix: str, made: ast.ClassDef) -> Iterator[Option]:
    for body in made.body:
        if isinstance(body, ast.FunctionDef) and body.name == "__init__":
            defaults = {item.arg: value for item, value in with_defaults(body.args)}
            for item in (*body.args.args[1:], *body.args.kwonlyargs):
                yield Option(
                    name=f"{prefix}.{item.arg}",
                    default=value_of(defaults.get(item.arg)),
                    unread=is_unread(defaults.get(item.arg)),
                    required=item.arg not in defaults,
                )


def _files(project: Project, call: ast.Call) -> Iterator[Source]:
    """Where the Trainer's defaults may be set: the script, and the file of its command line."""
    yield project.script
    made = project.class_named(call.func)
    if made is not None:
        yield made[0]


def _bounds(source: Source) -> bool:
    """Whether a file says how long a run is, as a keyword or in a dictionary."""
    for node in source.nodes:
        words = [node.arg] if isinstance(node, ast.keyword) else [
            constant(key) for key in node.keys] if isinstance(node, ast.Dict) else []  # fmt: skip
        if any(str(word).rpartition(".")[2] in LENGTHS for word in words):
            return True
    return False
