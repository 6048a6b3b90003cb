"""Which arguments a script takes, by whatever it reads them with.

Read from its code: argparse, dataclasses of ``HfArgumentParser``, click, typer, fire, Lightning's
command line, and constants that ``exec`` of a configurator overrides (nanoGPT).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.doctor.source import Source
from compilegate.doctor.syntax import Function, called, constant, dotted, keyword, last_name
from compilegate.doctor.words import with_defaults

ARGPARSE, DATACLASSES, CLICK, TYPER, FIRE, LIGHTNING, CONSTANTS, NONE = (
    "argparse", "dataclasses", "click", "typer", "fire", "lightning", "constants", "none",
)  # fmt: skip
SWITCHES = ("store_true", "store_false")


@dataclass(frozen=True)
class Option:
    """An argument: its name without dashes, its default (None where there is none to read).

    A ``switch`` is passed without a value.
    """

    name: str
    default: Any = None
    required: bool = False
    switch: bool = False
    choices: tuple[str, ...] = ()

    @property
    def plain(self) -> str:
        """The last part of its name, with underscores."""
        return self.name.rpartition(".")[2].replace("-", "_").lower()


@dataclass(frozen=True)
class CommandLine:
    """A script's arguments; ``positional`` are those without a name, which no hyperparameter is."""

    reader: str
    options: tuple[Option, ...] = ()
    positional: tuple[str, ...] = field(default=())

    def find(self, names: Sequence[str]) -> Option | None:
        """The option with the first of these names that there is one with."""
        by_name = {option.plain: option for option in reversed(self.options)}
        return next((by_name[name] for name in names if name in by_name), None)


def command_line(source: Source) -> CommandLine:
    """What the script reads its arguments with, and which it takes."""
    if any(called(call) == "LightningCLI" for call in source.calls):
        return CommandLine(LIGHTNING, tuple(_lightning(source)))
    if any(called(call) == "HfArgumentParser" for call in source.calls):
        return CommandLine(DATACLASSES, tuple(_dataclasses(source)))
    if source.uses("click") or source.uses("typer") or source.uses("fire"):
        found = _of_functions(source)
        if found is not None:
            return found
    added = [call for call in source.calls if called(call) == "add_argument"]
    if added:
        return _argparse(added)
    if any(called(call) == "exec" and "configurator" in ast.unparse(call) for call in source.calls):
        return CommandLine(CONSTANTS, tuple(_constants(source.tree)))
    return CommandLine(NONE)


def _argparse(added: Sequence[ast.Call]) -> CommandLine:
    options, positional = [], []
    for call in added:
        words = [str(item.value) for item in call.args if isinstance(item, ast.Constant)]
        long = [word for word in words if word.startswith("--")] or words[:1]
        if not long:
            continue
        if not long[0].startswith("-"):
            if constant(keyword(call, "nargs")) not in ("?", "*"):
                positional.append(long[0])
            continue
        action = keyword(call, "action")
        options.append(
            Option(
                name=long[0].lstrip("-"),
                default=_value(keyword(call, "default")),
                required=constant(keyword(call, "required")) is True,
                switch=constant(action) in SWITCHES
                or (action is not None and last_name(action) == "BooleanOptionalAction"),
                choices=_words(keyword(call, "choices")),
            )
        )
    return CommandLine(ARGPARSE, tuple(options), tuple(positional))


def _dataclasses(source: Source) -> Iterator[Option]:
    """The fields of the file's dataclasses; those of TrainingArguments are the Trainer's."""
    for node in source.nodes:
        if not isinstance(node, ast.ClassDef) or not node.decorator_list:
            continue
        if "dataclass" not in [last_name(getattr(one, "func", one)) for one in node.decorator_list]:
            continue
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                default = _field_default(item.value)
                yield Option(
                    name=item.target.id,
                    default=_value(default),
                    required=item.value is None,
                    choices=_literal(item.annotation),
                )


def _field_default(value: ast.expr | None) -> ast.expr | None:
    return keyword(value, "default") if isinstance(value, ast.Call) else value


def _of_functions(source: Source) -> CommandLine | None:
    for function in source.functions:
        for decorator in function.decorator_list:
            name = source.meaning(getattr(decorator, "func", decorator))
            if name.endswith("click.command") or (name == "command" and source.uses("click")):
                return _click(function)
            if last_name(getattr(decorator, "func", decorator)) == "command" and source.uses(
                "typer"
            ):
                return _parameters(TYPER, function)
    for call in source.calls:
        name = source.called(call)
        if name in ("typer.run", "fire.Fire") and call.args:
            target = dotted(call.args[0])
            for function in source.functions:
                if function.name == target:
                    return _parameters(TYPER if name == "typer.run" else FIRE, function)
    return None


def _click(function: Function) -> CommandLine:
    options, positional = [], []
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call) or not decorator.args:
            continue
        words = [str(constant(item)) for item in decorator.args]
        if called(decorator) == "argument":
            positional.append(words[0])
        elif called(decorator) == "option":
            name = next((word for word in words if word.startswith("--")), words[0])
            both = "/" in name  # --cache/--no-cache
            choices = keyword(decorator, "type")
            options.append(
                Option(
                    name=name.partition("/")[0].lstrip("-"),
                    default=_value(keyword(decorator, "default")),
                    required=constant(keyword(decorator, "required")) is True,
                    switch=both or constant(keyword(decorator, "is_flag")) is True,
                    choices=_words(choices.args[0])
                    if isinstance(choices, ast.Call) and choices.args
                    else (),
                )
            )
    return CommandLine(CLICK, tuple(options), tuple(positional))


def _parameters(reader: str, function: Function) -> CommandLine:
    """Typer and fire take a function's parameters; typer writes them with hyphens."""
    defaults = {item.arg: value for item, value in with_defaults(function.args)}
    options, positional = [], []
    for item in (*function.args.args, *function.args.kwonlyargs):
        default, said = defaults.get(item.arg), _said(item, defaults.get(item.arg))
        kind = last_name(said.func) if said is not None else ""
        if kind == "Argument" or (default is None and kind != "Option"):
            positional.append(item.arg)
            continue
        words = [constant(word) for word in said.args] if said is not None else []
        named = [w for w in words if isinstance(w, str) and w.startswith("--")]
        if isinstance(default, ast.Call):
            default = default.args[0] if default.args else keyword(default, "default")
        plain = item.arg.replace("_", "-") if reader == TYPER else item.arg
        value = _value(default)
        options.append(
            Option(
                name=named[0].partition("/")[0].lstrip("-") if named else plain,
                default=None if value is ... else value,
                required=default is None or value is ...,
                switch=reader == TYPER and isinstance(value, bool),
                choices=_literal(item.annotation) if item.annotation else (),
            )
        )
    return CommandLine(reader, tuple(options), tuple(positional))


def _said(item: ast.arg, default: ast.expr | None) -> ast.Call | None:
    """The ``typer.Option(...)`` or ``typer.Argument(...)`` of a parameter."""
    places = [default, *(ast.walk(item.annotation) if item.annotation else ())]
    for node in places:
        if isinstance(node, ast.Call) and last_name(node.func) in ("Option", "Argument"):
            return node
    return None


def _lightning(source: Source) -> Iterator[Option]:
    """``model.`` and ``data.`` of Lightning's command line, and what every one has."""
    call = next(call for call in source.calls if called(call) == "LightningCLI")
    classes = {node.name: node for node in source.nodes if isinstance(node, ast.ClassDef)}
    for index, (prefix, word) in enumerate(
        (("model", "model_class"), ("data", "datamodule_class"))
    ):
        given = call.args[index] if index < len(call.args) else keyword(call, word)
        made = classes.get(dotted(given)) if given is not None else None
        for body in made.body if made else ():
            if isinstance(body, ast.FunctionDef) and body.name == "__init__":
                defaults = {item.arg: value for item, value in with_defaults(body.args)}
                for item in (*body.args.args[1:], *body.args.kwonlyargs):
                    yield Option(
                        name=f"{prefix}.{item.arg}",
                        default=_value(defaults.get(item.arg)),
                        required=item.arg not in defaults,
                    )
    yield Option("seed_everything")
    yield Option("trainer.max_steps")
    yield Option("trainer.precision", choices=("32-true", "bf16-mixed", "16-mixed"))


def _constants(tree: ast.Module) -> Iterator[Option]:
    """Constants at the top of a file, which its configurator lets the command line override."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            name = dotted(node.targets[0])
            value = _value(node.value)
            if name and not name.startswith("_") and isinstance(value, bool | int | float | str):
                yield Option(name, value)


def _value(node: ast.expr | None) -> Any:
    """A default as far as it can be read; of a choice between two the first."""
    if isinstance(node, ast.IfExp):
        node = node.body
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _computed(node)


def _computed(node: ast.expr) -> Any:
    """Products and powers of numbers, such as ``5 * 8``."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div):
        return None
    left, right = _value(node.left), _value(node.right)
    if not all(isinstance(side, int | float) for side in (left, right)) or right == 0:
        return None
    return left * right if isinstance(node.op, ast.Mult) else left / right


def _words(node: ast.expr | None) -> tuple[str, ...]:
    value = _value(node)
    if isinstance(value, dict | list | tuple | set):
        return tuple(str(word) for word in value)
    return ()


def _literal(annotation: ast.expr) -> tuple[str, ...]:
    """The words of ``Literal["a", "b"]`` in an annotation."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and last_name(node.value) == "Literal":
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return tuple(str(constant(item)) for item in inner)
    return ()
