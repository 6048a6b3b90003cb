"""Which arguments a script takes, by whatever it reads them with.

Read from its code: argparse, dataclasses of ``HfArgumentParser``, click, typer, fire, Lightning's
command line, and constants that ``exec`` of a configurator overrides (nanoGPT). Hydra's arguments
are keys of YAML files, which are not read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from compilegate.doctor.argument import Option, literal_words, value_of, words_of
from compilegate.doctor.dataclass_arguments import PARSERS, of_dataclasses, of_trl
from compilegate.doctor.lightning_arguments import lightning_call, of_lightning, subcommand
from compilegate.doctor.project import Project
from compilegate.doctor.source import Source
from compilegate.doctor.syntax import (
    Function,
    called,
    constant,
    dotted,
    keyword,
    last_name,
    receiver,
)
from compilegate.doctor.words import with_defaults

ARGPARSE, DATACLASSES, CLICK, TYPER, FIRE, LIGHTNING, CONSTANTS, HYDRA, ELSEWHERE, NONE = (
    "argparse", "dataclasses", "click", "typer", "fire", "lightning", "constants", "hydra",
    "elsewhere", "none",
)  # fmt: skip
TRAINS = re.compile(r"(pre|fine)?-?_?(train|fit|tun)\w*", re.IGNORECASE)
READS_ARGUMENTS = re.compile(
    r"_?(parse|get|make|build|create|add|read|load)_?\w*?(args?|arguments|argparse|parser|opts?|"
    r"options|flags)(_parser)?",
    re.IGNORECASE,
)
ABSL, ARGV = "absl", "sys.argv"
# What else reads arguments, and keeps their names where this module does not look.
OTHER_READERS = (
    "tyro", "simple_parsing", "jsonargparse", "docopt", "cyclopts",
    "plac", "tap", "pydantic_settings", "draccus", "pyrallis",
)  # fmt: skip
SWITCHES = ("store_true", "store_false")


@dataclass(frozen=True)
class CommandLine:
    """A script's arguments; ``positional`` are those without a name, which no hyperparameter is.

    ``subcommand`` is the word that makes it train, such as ``fit``. ``partly``: it takes others,
    whose names are put together as it runs.
    """

    reader: str
    options: tuple[Option, ...] = ()
    positional: tuple[str, ...] = field(default=())
    subcommand: str = ""
    partly: bool = False

    @property
    def unread(self) -> bool:
        """Whether it takes arguments whose names its code does not say."""
        return self.reader in (HYDRA, ELSEWHERE, ABSL, ARGV, *OTHER_READERS)

    def find(self, names: Sequence[str]) -> Option | None:
        """The option with the first of these names that there is one with."""
        by_name = {option.plain: option for option in reversed(self.options)}
        return next((by_name[name] for name in names if name in by_name), None)


def command_line(project: Project) -> CommandLine:
    """What the script reads its arguments with, and which it takes."""
    source = project.script
    cli = lightning_call(project)
    if cli is not None:
        return CommandLine(LIGHTNING, tuple(of_lightning(project, cli)), subcommand=subcommand(cli))
    if any(called(call) in PARSERS for call in source.calls):
        return CommandLine(DATACLASSES, (*of_dataclasses(project), *of_trl(source)))
    if source.uses("click", "typer", "fire", "hydra"):
        found = _of_functions(source)
        if found is not None:
            return found
    added = [call for call in source.calls if called(call) == "add_argument"]
    if added:
        return _argparse(source, added)
    if any(called(call) == "exec" and "configurator" in ast.unparse(call) for call in source.calls):
        return CommandLine(CONSTANTS, tuple(_constants(source.tree)))
    return CommandLine(_other_reader(source))


def _other_reader(source: Source) -> str:
    """What reads arguments that are not read here, if anything does."""
    if module_of_arguments(source) is not None:
        return ELSEWHERE
    if any(called(call).startswith("DEFINE_") for call in source.calls):
        return ABSL
    found = next((name for name in OTHER_READERS if source.uses(name)), NONE)
    looks = any(source.meaning(node) == "sys.argv" for node in source.nodes
                if isinstance(node, ast.Attribute | ast.Name))  # fmt: skip
    return ARGV if found == NONE and looks else found


def module_of_arguments(source: Source) -> str | None:
    """The module that a function which reads the arguments is imported from, dots and all."""
    for call in source.calls:
        if isinstance(call.func, ast.Name) and READS_ARGUMENTS.fullmatch(call.func.id):
            module = source.called(call).rpartition(".")[0]
            if module:
                return module
    return None


def _argparse(source: Source, added: Sequence[ast.Call]) -> CommandLine:
    commands = {name: constant(call.args[0]) for name, call in _made(source, "add_parser")
                if call.args}  # fmt: skip
    if not commands:
        return _arguments(added)
    groups = {name: dotted(receiver(call)) for name, call in _made(source, "add_argument_group")}
    for name, word in commands.items():
        if isinstance(word, str) and TRAINS.match(word):
            own = [dotted(receiver(call)) for call in added]
            mine = [call for call, of in zip(added, own, strict=True)
                    if groups.get(of, of) == name]  # fmt: skip
            return replace(_arguments(mine), subcommand=word)
    found = _arguments([call for call in added if dotted(receiver(call)) not in commands])
    choice = "|".join(map(str, commands.values()))
    return replace(found, positional=(choice, *found.positional))


def _made(source: Source, method: str) -> Iterator[tuple[str, ast.Call]]:
    """``name = parser.METHOD(…)``, for each."""
    for node in source.nodes:
        call = node.value if isinstance(node, ast.Assign) else None
        if isinstance(call, ast.Call) and isinstance(node, ast.Assign) and called(call) == method:
            yield dotted(node.targets[0]), call


def _arguments(added: Sequence[ast.Call]) -> CommandLine:
    options, positional, partly = [], [], False
    for call in added:
        words = [str(item.value) for item in call.args if isinstance(item, ast.Constant)]
        long = [word for word in words if word.startswith("--")] or words[:1]
        if not long:
            partly = True
            continue
        if not long[0].startswith("-"):
            if constant(keyword(call, "nargs")) not in ("?", "*"):
                positional.append(long[0])
            continue
        action = keyword(call, "action")
        options.append(
            Option(
                name=long[0].lstrip("-"),
                default=value_of(keyword(call, "default")),
                required=constant(keyword(call, "required")) is True,
                switch=constant(action) in SWITCHES
                or (action is not None and last_name(action) == "BooleanOptionalAction"),
                choices=words_of(keyword(call, "choices")),
            )
        )
    return CommandLine(ARGPARSE, tuple(options), tuple(positional), partly=partly)


def _of_functions(source: Source) -> CommandLine | None:
    for function in source.functions:
        for decorator in function.decorator_list:
            name = source.meaning(getattr(decorator, "func", decorator))
            if name == "hydra.main":
                return CommandLine(HYDRA)
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
                    default=value_of(keyword(decorator, "default")),
                    required=constant(keyword(decorator, "required")) is True,
                    switch=both or constant(keyword(decorator, "is_flag")) is True,
                    choices=words_of(choices.args[0])
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
        value = value_of(default)
        options.append(
            Option(
                name=named[0].partition("/")[0].lstrip("-") if named else plain,
                default=None if value is ... else value,
                required=default is None or value is ...,
                switch=reader == TYPER and isinstance(value, bool),
                choices=literal_words(item.annotation) if item.annotation else (),
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


def _constants(tree: ast.Module) -> Iterator[Option]:
    """Constants at the top of a file, which its configurator lets the command line override."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            name = dotted(node.targets[0])
            value = value_of(node.value)
            if name and not name.startswith("_") and isinstance(value, bool | int | float | str):
                yield Option(name, value)
